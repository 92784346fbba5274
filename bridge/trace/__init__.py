"""The recorder and the readers of what it wrote."""
