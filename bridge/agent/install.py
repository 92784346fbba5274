"""Installing node agents, and removing them: one npm run an install, whoever asks at once.

Owns: the lock, the order of steps. Rules (docs/decisions/0048-installs-by-rename.md):
- npm works in a directory of its own name, which becomes the install's by one rename, when it is
  whole and its `.ready` is written: what is killed in the middle never has an install's name, and
  an npm that outlives its killer writes where nobody looks. Removing begins with a rename, too.
- The lock is the kernel's (flock): who dies lets go of it. What others left is removed under it.
- Nothing is removed that was not made here: `BRIDGE_AGENTS_DIR` may be a directory with more in it.
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
from typing import NamedTuple

import anyio
import anyio.to_thread

from bridge.agent import node, npm
from bridge.agent.installed import NODE, READY, Found, Ready, every, look, node_packages, place
from bridge.agent.npm import Tell
from bridge.agent.versions import faults, faulty, manifest, with_packages
from bridge.errors import BridgeError, UsageError
from bridge.io.process import Family
from bridge.wire import codec
from protocol_schemas.profile import Install, Profile

_LOCK = ".lock"
_PART = ".part-"
"""How the names begin of what is not yet, or no longer, an install."""
_ASKED_EVERY = 0.1


class _Job(NamedTuple):
    """An install to be made. `node`: the version of npm's that it runs on; empty: the machine's."""

    agent: str
    wanted: Install
    node: str
    environment: Mapping[str, str]
    family: Family
    tell: Tell

    @property
    def prefix(self) -> Path:
        return place(self.agent, self.wanted.packages, self.environment)

    def look(self) -> Found | None:
        return look(self.agent, self.wanted, self.environment)


async def install(
    profile: Profile, environment: Mapping[str, str], *, family: Family, tell: Tell
) -> Found:
    """Installs an agent in the profile's versions, and the node it needs; there already, it uses no
    network. `tell` gets a short line for each step. Raises BridgeError, UsageError."""
    wanted = with_packages(profile, {}).install
    if wanted is None:
        raise UsageError(f"agent {profile.name} has no packages: install its program yourself")
    known = faults()
    for name, number in wanted.packages.items():
        if reason := faulty(name, number, known):
            tell(f"{name} {number} is known for a fault: {reason}")
    version = await node.wanted(wanted.node, environment, family)
    if version:
        tell(f"needs node {wanted.node} or newer, takes {version} from npm")
        own = Install(packages=node_packages(version))
        await _install(_Job(NODE, own, "", environment, family, tell))
        await node.check(version, environment, family)
    return await _install(_Job(profile.name, wanted, version, environment, family, tell))


async def _install(job: _Job) -> Found:
    words = " ".join(f"{name}@{number}" for name, number in job.wanted.packages.items())
    prefix = job.prefix
    with _told_of(prefix):
        prefix.parent.mkdir(parents=True, exist_ok=True)
        async with _locked(prefix.parent, job.tell):
            found = job.look()
            if found is None:
                began = time.monotonic()
                job.tell(f"npm install {words}")
                await _bring(job)
                job.tell(f"ready in {time.monotonic() - began:.1f} s: {prefix}")
            elif found.ready.node != job.node:
                _write_ready(prefix, job)
            else:
                job.tell(f"{words}: already there")
    found = job.look()
    if found is None:
        raise BridgeError(f"{prefix} was removed while it was installed; try again")
    return found


async def _bring(job: _Job) -> None:
    """The install, made aside and put in its place. Under the lock."""
    prefix = job.prefix
    await _in_thread(_sweep, prefix.parent)
    staging = _aside(prefix)
    try:
        staging.mkdir()
        await npm.install(
            staging,
            job.wanted.packages,
            scripts=job.wanted.scripts,
            environment=job.environment,
            family=job.family,
            tell=job.tell,
        )
        _check(staging, job.wanted)
        _write_ready(staging, job)
        await _in_thread(_put, staging, prefix)
    finally:
        with anyio.CancelScope(shield=True):
            await _in_thread(_remove_tree, staging)


async def remove(
    agent: str, version: str | None, environment: Mapping[str, str], *, tell: Tell
) -> list[Path]:
    """Removes an agent's installs: all, or those of a version of its own; gives where they were."""
    chosen: list[Path] = []
    for prefix, said in every(environment):
        own = prefix.name.partition("@")[0]
        if said.agent == prefix.parent.name == agent and version in (None, own, prefix.name):
            chosen.append(prefix)
    if not chosen:
        return []
    folder = chosen[0].parent
    with _told_of(folder):
        async with _locked(folder, tell):
            for prefix in chosen:
                if prefix.exists():
                    await _in_thread(_take_away, prefix)
            await _in_thread(_sweep, folder)
    return chosen


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


def _write_ready(prefix: Path, job: _Job) -> None:
    """Writes the `.ready`, which is there whole or not at all."""
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    said = Ready(job.agent, job.wanted.packages, job.wanted.scripts, job.node, date)
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
    """Removes an install: it is none from the rename on, whatever becomes of the rest."""
    aside = _aside(prefix)
    os.rename(prefix, aside)
    _remove_tree(aside)


def _aside(prefix: Path) -> Path:
    """A name that nobody else uses and that is no install's."""
    return prefix.with_name(f"{_PART}{prefix.name}-{os.urandom(6).hex()}")


def _sweep(folder: Path) -> None:
    """Removes what an install or a removal left that did not come to its end."""
    for entry in folder.glob(f"{_PART}*"):
        _remove_tree(entry)


def _remove_tree(folder: Path) -> None:
    # An npm whose killer could not reach it may still write: the next one sweeps what it leaves.
    shutil.rmtree(folder, ignore_errors=True)


async def _in_thread(work: Callable[..., None], *arguments: Path) -> None:
    """Many files take a while, and the loop may be a daemon's."""
    await anyio.to_thread.run_sync(partial(work, *arguments))
