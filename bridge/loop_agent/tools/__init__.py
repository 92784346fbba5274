"""The embedded agent's own tools: bash, edit, search."""
