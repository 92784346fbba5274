"""What we act on of each protocol, as msgspec structs, with their JSON Schemas exported beside them."""
