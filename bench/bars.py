"""What a figure must be at most, or at least, and whether it is. Used by the proxies' benches."""


def verdict(words: str, value: float, bar: float, *, least: bool = False) -> bool:
    """Prints a figure beside its bar; whether it is kept."""
    good = value >= bar if least else value <= bar
    limit = "at least" if least else "at most"
    print(f"  {words:<58} {value:8.2f}   {limit} {bar:g}{'' if good else '   MISSED'}")
    return good
