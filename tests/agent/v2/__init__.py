"""The translation between ACP version 2 and the version 1 that the daemon thinks in."""
