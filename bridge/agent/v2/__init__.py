"""ACP version 2 as a client: translated at the edge, sans-IO, loaded when an agent speaks it."""
