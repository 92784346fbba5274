"""The daemon between a harness and a coding agent: ACP sessions, MCP and model proxies."""

__version__ = "0.1.0"
