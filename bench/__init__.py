"""Measures the daemon against the reference daemon of verifiers 0.4: `make bench`."""
