"""The suite for authors of daemons: a host plays the three generations of docs/host-protocol.md."""
