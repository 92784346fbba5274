"""Pure decisions: what to rewrite, retry, allow or stop. No I/O, no state of their own."""
