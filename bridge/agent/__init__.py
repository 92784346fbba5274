"""The agent's side of the daemon: its process, its ACP connection, the services it may use."""
