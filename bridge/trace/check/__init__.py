"""`trace check`: the protocol's rules, held against what was recorded."""
