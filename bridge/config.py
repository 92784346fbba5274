"""The daemon's settings: command line over environment over `--config` file over defaults.

Owns: their names and where each may be given. Hosts may be unable to pass arguments, so every
option also has a variable (`BRIDGE_RECORD` for `--record`). Called by the commands.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from bridge.errors import UsageError
from bridge.wire import codec

PREFIX = "BRIDGE_"


class Settings(msgspec.Struct):
    """What holds for the whole life of a daemon. `defaults`: keys of every session's `config`;
    `agent`: one of them, as an option of its own."""

    loop: Literal["auto", "asyncio", "uvloop", "trio"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    record: str | None = None
    record_secrets: bool = False
    agent: str | None = None
    intercept: str | None = None
    model_proxy: Literal["auto", "off"] = "auto"
    mcp_proxy: Literal["auto", "off"] = "auto"
    defaults: dict[str, Any] = {}


def load(options: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """The settings; `options` are the command line's, None where not given. Raises UsageError."""
    path = options.get("config") or environment.get(PREFIX + "CONFIG")
    values: dict[str, Any] = _file(path) if path else {}
    for name in Settings.__struct_fields__:
        variable = environment.get(PREFIX + name.upper())
        if variable and name != "defaults":
            values[name] = (
                variable in ("1", "true", "yes") if name == "record_secrets" else variable
            )
        if options.get(name) is not None:
            values[name] = options[name]
    try:
        settings = codec.convert(values, Settings)
    except codec.JSONError as error:
        raise UsageError(f"the settings: {error} (options, {PREFIX}* variables, {path})") from None
    if settings.agent is not None:
        settings.defaults = settings.defaults | {"agent": settings.agent}
    return settings


def _file(path: str) -> dict[str, Any]:
    try:
        data = Path(path).read_bytes()
        if path.endswith(".toml"):
            import tomllib  # only for those who configure in TOML

            return tomllib.loads(data.decode())
        values = codec.mapping(codec.decode(data))
    except (OSError, ValueError) as error:
        raise UsageError(f"--config {path}: {error}") from None
    if values is None:
        raise UsageError(f"--config {path}: not a JSON object")
    return values


def backend(loop: str) -> dict[str, Any]:
    """The keyword arguments of anyio.run for a `--loop`."""
    if loop == "trio":
        return {"backend": "trio"}
    use_uvloop = loop == "uvloop"
    if loop == "auto":
        try:
            import uvloop  # noqa: F401  # pyright: ignore[reportUnusedImport]
        except ImportError:
            pass
        else:
            use_uvloop = True
    return {"backend": "asyncio", "backend_options": {"use_uvloop": use_uvloop}}
