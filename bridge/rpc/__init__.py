"""JSON-RPC over a pair of pipes: one reader, one writer, wire order kept."""
