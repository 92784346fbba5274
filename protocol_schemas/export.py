"""Writes the JSON Schemas of what we act on: `python -m protocol_schemas.export [--check]`.

Owns: `schemas/NAME.json`, one a module, every struct of it under `$defs`. Rule: they are generated,
never edited; `--check` (part of `make check`) exits 3 where one is not current.
"""

import importlib
import json
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

import protocol_schemas

FOLDER = Path(__file__).parent / "schemas"


def modules() -> list[ModuleType]:
    """The modules of this package that define structs."""
    names = (item.name for item in pkgutil.iter_modules(protocol_schemas.__path__))
    found = [importlib.import_module(f"protocol_schemas.{name}") for name in sorted(names)]
    return [module for module in found if structs(module)]


def structs(module: ModuleType) -> list[type[msgspec.Struct]]:
    """The public structs that a module defines, in its own order, but for those that only say
    where to look in a message (their fields are raw JSON)."""
    return [
        item
        for name, item in vars(module).items()
        if isinstance(item, type)
        and issubclass(item, msgspec.Struct)
        and item.__module__ == module.__name__
        and not name.startswith("_")
        and not any(isinstance(value, msgspec.Raw) for value in item.__struct_defaults__)
    ]


def schema_of(module: ModuleType) -> str:
    """The module's JSON Schema document, as it stands in the file."""
    _, definitions = msgspec.json.schema_components(
        structs(module), schema_hook=_anything, ref_template="#/$defs/{name}"
    )
    document: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": module.__name__,
        "description": (module.__doc__ or "").strip().splitlines()[0],
        "$defs": definitions,
    }
    return json.dumps(document, indent=2) + "\n"


def _anything(kind: type) -> dict[str, Any]:
    """Raw JSON may be anything."""
    if kind is msgspec.Raw:
        return {}
    raise NotImplementedError(f"no JSON Schema for {kind}")


def main(arguments: list[str]) -> int:
    """Writes the files, or with `--check` names those that are not current (exit code 3)."""
    wanted = {f"{module.__name__.rpartition('.')[2]}.json": module for module in modules()}
    stale = [path for path in FOLDER.glob("*.json") if path.name not in wanted]
    for name, module in wanted.items():
        path, text = FOLDER / name, schema_of(module)
        if not path.exists() or path.read_text() != text:
            stale.append(path)
            if "--check" not in arguments:
                path.write_text(text)
    if "--check" not in arguments:
        return 0
    for path in stale:
        print(f"{path.name} is not current: run python -m protocol_schemas.export", file=sys.stderr)
    return 3 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
