"""Installing node agents, and removing them: one npm run an install, whoever asks at once.

Owns: the lock, the order of steps. Rules:
- npm works in a directory of its own name, which becomes the install's by one rename, when it is
  whole and its `.ready` is written: what is killed in the middle never has an install's name, and
  an npm that outlives its killer writes where nobody looks.
- `.ready` is the first to go when one is removed.
- The lock is the kernel's (flock): who dies lets go of it. What others left is removed under it.
Called by `bridge.cli.agents`.
"""

import fcntl
import os
import shutil
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from errno import errorcode
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from bridge.agent import node, npm
from bridge.agent.installed import NODE, READY, Found, Ready, home, look, node_packages, place
from bridge.agent.npm import Tell
from bridge.agent.versions import faults, faulty, manifest, with_packages
from bridge.errors import BridgeError, UsageError
from bridge.io.process import Family
from bridge.wire import codec
from protocol_schemas.profile import Install, Profile

_LOCK = ".lock"
_ASKED_EVERY = 0.1


async def install(
    profile: Profile, environment: Mapping[str, str], *, family: Family, tell: Tell
) -> Found:
    """Installs an agent in the profile's versions, and the node it needs; there already, it uses no
    network. `tell` gets a short line for each step. Raises BridgeError, UsageError."""
    if profile.install is None:
        raise UsageError(f"agent {profile.name} has no packages: install its program yourself")
    wanted = with_packages(profile, {}).install
    assert wanted is not None
    for name, number in wanted.packages.items():
        if reason := faulty(name, number, faults()):
            tell(f"{name} {number} is known for a fault: {reason}")
    version = await node.wanted(wanted.node, environment, family)
    if version:
        tell(f"needs node {wanted.node} or newer, takes {version} from npm")
        own = Install(packages=node_packages(version))
        await _install(NODE, own, "", environment, family, tell)
        await node.check(version, environment, family)
    return await _install(profile.name, wanted, version, environment, family, tell)


async def _install(
    agent: str,
    wanted: Install,
    version: str,
    environment: Mapping[str, str],
    family: Family,
    tell: Tell,
) -> Found:
    words = " ".join(f"{name}@{number}" for name, number in wanted.packages.items())
    prefix = place(agent, wanted.packages, environment)
    with _told_of(prefix):
        prefix.parent.mkdir(parents=True, exist_ok=True)
        async with _locked(prefix.parent, tell):
            found = look(agent, wanted, environment)
            if found is None:
                began = time.monotonic()
                tell(f"npm install {words}")
                await _bring(agent, wanted, version, environment, family, tell)
                tell(f"ready in {time.monotonic() - began:.1f} s: {prefix}")
            elif found.ready.node != version:
                _write_ready(prefix, agent, wanted, version)
            else:
                tell(f"{words}: already there")
    found = look(agent, wanted, environment)
    assert found is not None
    return found


async def _bring(
    agent: str,
    wanted: Install,
    version: str,
    environment: Mapping[str, str],
    family: Family,
    tell: Tell,
) -> None:
    """The install, made aside and put in its place. Under the lock."""
    prefix = place(agent, wanted.packages, environment)
    await _in_thread(_sweep, prefix.parent)
    staging = _aside(prefix)
    try:
        staging.mkdir()
        await npm.install(
            staging,
            wanted.packages,
            scripts=wanted.scripts,
            environment=environment,
            family=family,
            tell=tell,
        )
        _check(staging, wanted)
        _write_ready(staging, agent, wanted, version)
        await _in_thread(_put, staging, prefix)
    finally:
        with anyio.CancelScope(shield=True):
            await _in_thread(_remove_tree, staging)


async def remove(
    agent: str, version: str | None, environment: Mapping[str, str], *, tell: Tell
) -> list[Path]:
    """Removes an agent's installs: all, or those of a version of its own; gives where they were."""
    folder = home(environment) / agent
    if not folder.is_dir():
        return []
    removed: list[Path] = []
    with _told_of(folder):
        async with _locked(folder, tell):
            for prefix in sorted(folder.glob("[!.]*")):
                if version is None or version in (prefix.name, prefix.name.partition("@")[0]):
                    await _in_thread(_take_away, prefix)
                    removed.append(prefix)
            await _in_thread(_sweep, folder)
    return removed


@asynccontextmanager
async def _locked(folder: Path, tell: Tell) -> AsyncGenerator[None]:
    """Alone in an agent's directory; waits for whoever is at work there."""
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        told = False
        while not _lock(fd):
            if not told:
                tell("waits for another process that installs or removes it")
                told = True
            # No event tells of a lock, and a thread that waits for one cannot be called off.
            await anyio.sleep(_ASKED_EVERY)
        yield
    finally:
        os.close(fd)


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _told_of(where: Path) -> Generator[None]:
    """Turns the system's errors in a place into words that say what to do."""
    try:
        yield
    except OSError as error:
        code = errorcode.get(error.errno or 0, "")
        mend = npm.remedy(code) or "set BRIDGE_AGENTS_DIR to another place"
        raise BridgeError(f"{error.filename or where}: {error.strerror} ({code}); {mend}") from None


def _check(staging: Path, wanted: Install) -> None:
    """Raises BridgeError unless what npm left is what it was told to bring."""
    for name, version in wanted.packages.items():
        found = manifest(staging / "node_modules" / name)
        if found is None or found[1].partition("+")[0] != version.partition("+")[0]:
            there = f"{found[1]} of it" if found else "nothing of it"
            raise BridgeError(f"npm was to install {name} {version} and left {there}")


def _write_ready(prefix: Path, agent: str, wanted: Install, version: str) -> None:
    """Writes the `.ready`, which is there whole or not at all."""
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    said = Ready(agent, wanted.packages, wanted.scripts, version, date)
    draft = prefix / f"{READY}.new"
    with open(draft, "wb") as file:
        file.write(codec.encode(said))
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, prefix / READY)


def _put(staging: Path, prefix: Path) -> None:
    """Gives an install its name, in the place of one that is not whole."""
    if prefix.exists():
        _take_away(prefix)
    # A rename can reach the disk before what it names: a power cut would leave it hollow.
    os.sync()
    os.rename(staging, prefix)


def _take_away(prefix: Path) -> None:
    (prefix / READY).unlink(missing_ok=True)
    aside = _aside(prefix)
    os.rename(prefix, aside)
    _remove_tree(aside)


def _aside(prefix: Path) -> Path:
    """A name that nobody else uses and that is no install's."""
    return prefix.with_name(f".{prefix.name}.{os.getpid()}.{os.urandom(4).hex()}")


def _sweep(folder: Path) -> None:
    """Removes what an install or a removal left that did not come to its end."""
    for entry in folder.glob(".*"):
        if entry.name != _LOCK:
            _remove_tree(entry)


def _remove_tree(folder: Path) -> None:
    # An npm whose killer could not reach it may still write: the next one sweeps what it leaves.
    shutil.rmtree(folder, ignore_errors=True)


async def _in_thread(work: Callable[..., None], *arguments: Path) -> None:
    """Many files take a while, and the loop may be a daemon's."""
    await anyio.to_thread.run_sync(partial(work, *arguments))
