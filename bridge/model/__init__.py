"""The model proxy: the agent's HTTP on its way to the harness, mended for strict providers."""
