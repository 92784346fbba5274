"""The recorder and the debugger: what passed through the bridge, on one clock, without secrets."""
