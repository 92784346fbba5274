"""A scripted model server on loopback: what demos and tests run their agents against."""
