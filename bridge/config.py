"""The daemon's settings: command line over environment over `--config` file over defaults.

Owns: their names and where each may be given. Hosts may be unable to pass arguments, so every
option also has a variable (`BRIDGE_RECORD` for `--record`). Called by the commands.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from bridge.errors import UsageError, meant
from bridge.wire import codec
from protocol_schemas.host import Config

PREFIX = "BRIDGE_"
_OTHERS = ("agents_dir", "secrets")
"""Variables of this name that are no settings."""
_SWITCHES = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


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


def choices(name: str) -> tuple[str, ...]:
    """What a setting may be, where that is a list of words; else nothing."""
    kind = Settings.__annotations__[name]
    return get_args(kind) if get_origin(kind) is Literal else ()


def load(options: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """The settings; `options` are the command line's, None where not given. Raises UsageError."""
    given = options.get("config")
    path = given or environment.get(PREFIX + "CONFIG")
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    if path:
        where = f"{'--config' if given else PREFIX + 'CONFIG'} {path}"
        values = _file(path, where)
        places = {name: f"{where}: {name}" for name in values}
    for name in Settings.__struct_fields__:
        variable = PREFIX + name.upper()
        if environment.get(variable) and name != "defaults":
            text = environment[variable]
            values[name] = _SWITCHES.get(text.lower(), text) if name == "record_secrets" else text
            places[name] = variable
        if options.get(name) is not None:
            values[name] = options[name]
            places[name] = f"--{name.replace('_', '-')}"
    try:
        settings = codec.convert(values, Settings)
    except codec.JSONError:
        raise _blamed(values, places) from None
    if settings.agent is not None:
        settings.defaults = settings.defaults | {"agent": settings.agent}
    return settings


def misspelt(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that look like settings and are none, each with what may have been meant:
    others are free to use the prefix, so that they are no error."""
    known = [PREFIX + name.upper() for name in (*Settings.__struct_fields__, "config", *_OTHERS)]
    found = sorted(name for name in environment if name.startswith(PREFIX) and name not in known)
    return {name: hint for name in found if (hint := meant(name, known))}


def _blamed(values: Mapping[str, Any], places: Mapping[str, str]) -> UsageError:
    """What is wrong with the first value that is, where it was given, and what there is."""
    for name, value in values.items():
        try:
            codec.convert({name: value}, Settings)
        except codec.JSONError as error:
            if wanted := choices(name):
                return UsageError(f"{places[name]}: {value!r} is none of {', '.join(wanted)}")
            if name == "record_secrets":
                return UsageError(f"{places[name]}: {value!r} is neither 1 nor 0")
            return UsageError(f"{places[name]}: {error}")
    raise AssertionError("each setting by itself is right")


def _file(path: str, where: str) -> dict[str, Any]:
    try:
        data = Path(path).read_bytes()
        if path.endswith(".toml"):
            import tomllib  # only for those who configure in TOML

            values = tomllib.loads(data.decode())
        else:
            values = codec.mapping(codec.decode(data))
    except OSError as error:
        raise UsageError(f"{where}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
    if values is None:
        raise UsageError(f"{where}: not a JSON object")
    _check_names(values, Settings.__struct_fields__, f"{where}: there is no setting")
    defaults = codec.mapping(values.get("defaults"))
    if defaults is not None:
        _check_names(defaults, Config.__struct_fields__, f"{where}: defaults: a config has no key")
    return values


def _check_names(values: Mapping[str, Any], known: Sequence[str], words: str) -> None:
    for name in values:
        if name not in known:
            hint = meant(name, known) or f"; there are {', '.join(known)}"
            raise UsageError(f"{words} {name!r}{hint}")


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
