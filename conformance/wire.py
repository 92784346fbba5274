"""JSON as it is written here: compact, in UTF-8, as it stands."""

import json


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
