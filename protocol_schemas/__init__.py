"""What we act on of each protocol: msgspec structs, their JSON Schemas exported beside them."""
