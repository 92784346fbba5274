"""Where agent profiles come from: built in, the user's own, or a file by its path.

Owns: which profile a name means, and that it is right as a whole before anything is started. Rule:
the user's win over the built-in ones of the same name; what is wrong is told with the file, the key
and what is allowed. Imported only where an agent is named: by `bridge.session.launcher` for
`config.agent`, and by `bridge.cli.agents`.
"""

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from bridge.agent import placeholders
from bridge.errors import UsageError
from bridge.wire import codec
from protocol_schemas.profile import Profile


def directory(environment: Mapping[str, str]) -> Path:
    """Where the user's profiles are: `$XDG_CONFIG_HOME/acp-mcp-bridge/agents`."""
    home = environment.get("HOME") or "~"
    base = environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
    return Path(base).expanduser() / "acp-mcp-bridge" / "agents"


def names(environment: Mapping[str, str]) -> list[str]:
    """The profiles that can be named, in order: the built-in ones and the user's."""
    own = (file.stem for file in directory(environment).glob("*.toml"))
    return sorted({file.name.removesuffix(".toml") for file in _built_in()} | set(own))


def load(name: str, environment: Mapping[str, str]) -> Profile:
    """The profile of that name, or the one in the file (a path ends with .toml or has a slash).

    Raises UsageError.
    """
    if "/" in name or name.endswith(".toml"):
        return _read(Path(name).expanduser())
    own = directory(environment) / f"{name}.toml"
    if own.exists():
        return _read(own, name)
    built_in = {file.name.removesuffix(".toml"): file for file in _built_in()}
    if name not in built_in:
        raise UsageError(
            f"there is no agent profile {name!r}; there are {', '.join(names(environment))}, "
            f"the path of a .toml file, or one of your own in {directory(environment)}"
        )
    return parse(built_in[name].read_text(), f"{name}.toml", name)


def parse(text: str, where: str, name: str | None = None) -> Profile:
    """The profile in a TOML text; `where` names it in errors, `name` is what it must be called."""
    try:
        values: dict[str, Any] = tomllib.loads(text)
        profile = codec.convert(values, Profile)
        placeholders.check(profile)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"agent profile {where}: not TOML: {error}") from None
    except (codec.JSONError, UsageError) as error:
        raise UsageError(f"agent profile {where}: {error}") from None
    if name is not None and profile.name != name:
        raise UsageError(
            f"agent profile {where}: name is {profile.name!r}; it must be the file's, {name!r}"
        )
    return profile


def _read(path: Path, name: str | None = None) -> Profile:
    try:
        if path.exists() and not path.is_file():
            # To read a pipe would be to wait for a writer.
            raise UsageError(f"agent profile {path}: no regular file")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"agent profile {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"agent profile {path}: not UTF-8: {error}") from None
    except ValueError as error:
        raise UsageError(f"agent profile {str(path)!r}: no path: {error}") from None
    return parse(text, str(path), name)


def _built_in() -> list[Any]:
    folder = resources.files("bridge.agent") / "profiles"
    return [file for file in folder.iterdir() if file.name.endswith(".toml")]
