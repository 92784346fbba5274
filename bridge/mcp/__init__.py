"""The MCP proxy: each tool call is a series of attempts, each on a fresh session."""
