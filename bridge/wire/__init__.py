"""Sans-IO wire formats: bytes in, values out, no loop and no clock."""
