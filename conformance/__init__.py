"""The conformance suite for authors of ACP agents, clients and host daemons: docs/conformance.md.

It judges by the official JSON Schemas and by the words of the specification, never by the models of
this project: nothing here imports `bridge` or `protocol_schemas`, and neither imports this.
"""
