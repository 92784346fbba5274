"""Traces as other tools read them: `trace export`."""
