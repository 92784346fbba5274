"""The embedded ACP agent: a chat loop over a chat completions endpoint."""
