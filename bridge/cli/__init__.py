"""The commands, each imported only when it is called."""
