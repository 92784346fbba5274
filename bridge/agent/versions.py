"""Versions of npm packages: which may be asked for, which is newer, which have faults.

Owns: what is known of faulty versions (faults.toml beside this). Used by the installer, the doctor
and `bridge.cli.agents`.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path

import msgspec

from bridge.errors import UsageError
from bridge.wire import codec
from protocol_schemas.profile import Profile

_CHARACTERS = re.compile(r"[A-Za-z0-9._+-]+")
_EXACT = re.compile(r"\d+\.\d+\.\d+(-[A-Za-z0-9.-]+)?(\+[A-Za-z0-9.-]+)?")


class Fault(msgspec.Struct, forbid_unknown_fields=True):
    """Versions of a package that do not do. `command`: its program, where no profile names it."""

    package: str
    versions: str
    reason: str
    command: str = ""


def faults() -> list[Fault]:
    """All that are known."""
    text = (resources.files("bridge.agent") / "faults.toml").read_text(encoding="utf-8")
    return codec.convert(tomllib.loads(text)["fault"], list[Fault])


def faulty(package: str, version: str, known: Iterable[Fault]) -> str:
    """Why a version does not do; empty where nothing is known against it."""
    for fault in known:
        if fault.package == package and within(version, fault.versions):
            return fault.reason
    return ""


def check(package: str, version: str) -> None:
    """Raises UsageError for what is not one exact version: a range or a tag would not say what was
    installed, and other characters mean something else to npm."""
    if not _CHARACTERS.fullmatch(version):
        raise UsageError(
            f"version {version!r} of {package}: only letters, digits and . _ + - may be in it"
        )
    if not _EXACT.fullmatch(version):
        raise UsageError(
            f"version {version!r} of {package}: an exact one is needed, such as 1.2.3; "
            f"`npm view {package} dist-tags versions` lists them"
        )


def with_packages(profile: Profile, versions: Mapping[str, str]) -> Profile:
    """The profile with other versions of its packages, all of them checked; raises UsageError."""
    if profile.install is None:
        if versions:
            raise UsageError(f"agent {profile.name} installs nothing: it takes no versions")
        return profile
    packages = profile.install.packages
    for name in versions:
        if name not in packages:
            raise UsageError(f"agent {profile.name} has no package {name!r}: {', '.join(packages)}")
    chosen = packages | dict(versions)
    for name, version in chosen.items():
        check(name, version)
    install = msgspec.structs.replace(profile.install, packages=chosen)
    return msgspec.structs.replace(profile, install=install)


def package_version(command: Path, package: str) -> str | None:
    """The version of the npm package a command belongs to."""
    for folder in command.resolve().parents:
        if (found := manifest(folder)) and found[0] == package:
            return found[1]
    return None


def manifest(folder: Path) -> tuple[str, str] | None:
    """Name and version of the package in a folder."""
    with suppress(OSError, codec.JSONError):
        fields = codec.mapping(codec.decode((folder / "package.json").read_bytes())) or {}
        return str(fields.get("name")), str(fields.get("version"))
    return None


def numbers(version: str) -> tuple[int, ...]:
    """A version's numbers, to be compared."""
    return tuple(map(int, re.findall(r"\d+", version.partition("-")[0]))) or (0,)


def within(version: str, bound: str) -> bool:
    """Whether a version is under a bound such as `<0.64` or `=7.8.1`."""
    wanted = numbers(bound[1:])
    if bound[0] == "<":
        return numbers(version) < wanted
    return numbers(version) == wanted
