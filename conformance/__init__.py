"""The ACP conformance suite, judged by the official JSON Schemas alone."""
