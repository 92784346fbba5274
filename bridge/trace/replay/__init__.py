"""Recordings played again: as an agent, as a client, as a model server (`trace replay`)."""
