"""Installs by the real npm from a registry of the test's own: at once, cut short, disk full."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.agent.install import install, remove
from bridge.agent.installed import READY, find, node_packages
from bridge.agent.profile import load
from bridge.errors import BridgeError
from bridge.io.process import Family
from protocol_schemas.profile import Profile
from tests.peers.processes import MARKER, marked, survivors, wait_until
from tests.peers.registry import Package, Registry, npm_registry

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
PATIENCE = 60
PROFILE = """
name = "tiny"
title = "a tiny agent"
[install]
packages = {{ "@test/tiny" = "1.0.0", tiny-acp = "0.1.0" }}
scripts = {scripts}
node = "{node}"
[launch]
command = ["${{bin}}/tiny-acp"]
[wires.chat]
"""
PACKAGES = [
    Package(
        "@test/tiny",
        "1.0.0",
        {"mark.js": "require('fs').writeFileSync('ran', '')"},
        {"scripts": {"postinstall": "node mark.js"}},
    ),
    Package("@test/tiny", "1.1.0", {}),
    Package("tiny-acp", "0.1.0", {"acp.js": "#!/bin/sh\n"}, {"bin": "acp.js"}),
]


class Desk:
    """A machine's worth of settings, and the command."""

    def __init__(self, folder: Path, registry: Registry) -> None:
        self.folder, self.registry = folder, registry
        self.file = folder / "tiny.toml"
        self.home = folder / "agents"
        self.environment = os.environ | registry.environment(folder)
        self.environment |= {"BRIDGE_AGENTS_DIR": str(self.home), MARKER: str(folder)}
        self.environment |= {"HOME": str(folder)}
        self.write()

    def write(self, *, scripts: bool = False, node: str = "") -> None:
        self.file.write_text(PROFILE.format(scripts=str(scripts).lower(), node=node))

    @property
    def profile(self) -> Profile:
        return load(str(self.file), self.environment)

    @property
    def folders(self) -> list[str]:
        """What stands in the agent's directory beside the lock."""
        names = [entry.name for entry in (self.home / "tiny").glob("*")]
        return sorted(name for name in names if name != ".lock")

    def start(self, *arguments: str, prefix: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
        command = [*prefix, BRIDGE, "agents", "install", str(self.file), *arguments]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            start_new_session=True,
        )

    def install(self, *arguments: str, prefix: tuple[str, ...] = ()) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        with self.start(*arguments, prefix=prefix) as process:
            out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Checks at the end that no process is left."""
    with npm_registry() as registry:
        registry.packages += PACKAGES
        yield Desk(tmp_path, registry)
    assert survivors(str(tmp_path), 5) == []


def test_an_install_is_exact_and_once_there_needs_no_network(desk: Desk) -> None:
    code, out, err = desk.install()
    assert code == 0, err
    prefix = Path(out.strip())
    assert prefix == desk.home / "tiny/1.0.0@0.1.0"
    assert (prefix / "node_modules/.bin/tiny-acp").exists()
    assert not (prefix / "node_modules/@test/tiny/ran").exists()
    assert json.loads((prefix / READY).read_text())["packages"] == {
        "@test/tiny": "1.0.0",
        "tiny-acp": "0.1.0",
    }
    assert err.splitlines()[0] == "tiny: npm install @test/tiny@1.0.0 tiny-acp@0.1.0"
    assert err.splitlines()[-1].startswith("tiny: ready in ")
    desk.registry.asked.clear()
    assert desk.install()[:2] == (0, out)
    assert desk.registry.asked == []
    assert desk.folders == ["1.0.0@0.1.0"]


def test_scripts_run_where_they_must_and_the_install_without_them_will_not_do(desk: Desk) -> None:
    assert desk.install()[0] == 0
    desk.write(scripts=True)
    code, _, err = desk.install()
    assert code == 0
    assert "tiny: postinstall of @test/tiny@1.0.0" in err.splitlines()
    assert desk.folders == ["1.0.0@0.1.0"]
    assert (desk.home / "tiny/1.0.0@0.1.0/node_modules/@test/tiny/ran").exists()


def test_two_at_once_are_one_npm_run(desk: Desk) -> None:
    desk.registry.hold = ".tgz"
    with desk.start() as first:
        assert desk.registry.held.wait(PATIENCE)
        with desk.start() as second:
            assert second.stderr is not None
            assert "waits for another process" in second.stderr.readline()
            desk.registry.release.set()
            outs = [process.communicate(timeout=PATIENCE) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], outs
    assert outs[0][0] == outs[1][0]
    assert "already there" in outs[1][1]
    assert len(desk.registry.tarballs()) == len(set(desk.registry.tarballs())) == 2


@pytest.mark.parametrize("and_all_it_started", [False, True])
def test_what_was_killed_in_the_middle_is_no_install_and_the_next_try_succeeds(
    desk: Desk, and_all_it_started: bool
) -> None:
    desk.registry.hold = ".tgz"
    with desk.start() as process:
        assert desk.registry.held.wait(PATIENCE)
        victims = marked(str(desk.folder)) if and_all_it_started else [process.pid]
        assert len(victims) > 2 or not and_all_it_started
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert survivors(str(desk.folder), 5) == [], "npm goes on"
    [left] = desk.folders
    assert left.startswith(".part-")
    assert find(desk.profile, desk.environment) is None
    desk.registry.release.set()
    code, _, err = desk.install()
    assert code == 0, err
    assert desk.folders == ["1.0.0@0.1.0"]
    assert find(desk.profile, desk.environment) is not None


def test_a_signal_in_the_middle_leaves_nothing(desk: Desk) -> None:
    desk.registry.hold = ".tgz"
    with desk.start() as process:
        assert desk.registry.held.wait(PATIENCE)
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM
    assert desk.folders == []


def small_disk(home: Path) -> tuple[tuple[str, ...], str]:
    """A command prefix that leaves the installs little room and lists at the end what is there, and
    what is then said: a tiny tmpfs where a mount namespace may be made, else a limit on files."""
    home.mkdir()
    shell = ("sh", "-c", f'"$0" "$@"; code=$?; ls -A {home}/tiny; exit $code')
    mount = f'mount -t tmpfs -o size=64k none {home} && exec "$0" "$@"'
    for flags in ("-m", "-rm"):
        namespace = ("unshare", flags, "sh", "-c", mount)
        if subprocess.run([*namespace, "true"], capture_output=True).returncode == 0:
            return (*namespace, *shell), "the disk is full; make room"
    return ("prlimit", "--fsize=65536", *shell), "files may not grow so large here"


def test_a_full_disk_is_told_and_leaves_nothing(desk: Desk) -> None:
    desk.registry.packages.append(Package("@test/tiny", "2.0.0", {"big": "x" * 300_000}))
    prefix, words = small_disk(desk.home)
    code, out, err = desk.install("--version", "2.0.0", prefix=prefix)
    assert (code, out) == (1, ".lock\n")
    [line] = [line for line in err.splitlines() if line.startswith("acp-mcp-bridge:")]
    assert words in line


def test_a_version_that_nobody_published_is_told_and_leaves_nothing(desk: Desk) -> None:
    code, out, err = desk.install("--version", "9.9.9")
    assert (code, out) == (1, "")
    assert "No matching version found for @test/tiny@9.9.9. (ETARGET); there is no such" in err
    assert "Traceback" not in err
    assert desk.folders == []


def test_a_registry_that_cannot_be_reached_is_told(desk: Desk) -> None:
    desk.environment["npm_config_registry"] = "http://127.0.0.1:9"
    code, _, err = desk.install()
    assert code == 1
    assert "the registry cannot be reached" in err.splitlines()[-1]
    assert desk.folders == []


@pytest.mark.parametrize("version", ["1.0.0;reboot", "../../x", "latest"])
def test_a_version_that_is_none_is_a_usage_error_and_starts_nothing(
    desk: Desk, version: str
) -> None:
    code, _, err = desk.install("--version", version)
    assert code == 2
    assert err.startswith(f"acp-mcp-bridge: version {version!r} of @test/tiny: ")
    assert not desk.home.exists()


def test_a_place_that_cannot_be_written_is_told(desk: Desk) -> None:
    desk.home.write_text("a file")
    code, _, err = desk.install()
    assert code == 1
    assert f"{desk.home}" in err
    assert "set BRIDGE_AGENTS_DIR" in err


def standin(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_node_comes_from_npm_where_the_machines_is_too_old(desk: Desk) -> None:
    real = subprocess.check_output(["which", "node"], text=True).strip()
    bins = desk.folder / "bin"
    standin(bins, "node", f'[ "$1" = --version ] && echo v18.0.0 && exit\nexec {real} "$@"')
    desk.environment["PATH"] = f"{bins}:{desk.environment['PATH']}"
    desk.write(node="22.19")
    [(package, version)] = node_packages("22.23.3").items()
    desk.registry.packages.append(
        Package(package, version, {"bin/node": "#!/bin/sh\necho v22.23.3"})
    )
    code, _, err = desk.install()
    assert code == 0, err
    assert "needs node 22.19 or newer, takes 22.23.3 from npm" in err
    found = find(desk.profile, desk.environment)
    assert found is not None
    assert found.node is not None
    assert (found.node / "node").read_text() == "#!/bin/sh\necho v22.23.3"
    # A newer node has come to the machine since: that one is used, without asking anybody.
    standin(bins, "node", f'[ "$1" = --version ] && echo v24.0.0 && exit\nexec {real} "$@"')
    desk.registry.asked.clear()
    assert desk.install()[0] == 0
    found = find(desk.profile, desk.environment)
    assert found is not None
    assert found.node is None
    assert desk.registry.asked == []


@pytest.mark.anyio
async def test_on_every_loop_what_npm_left_is_looked_at(desk: Desk) -> None:
    bins = desk.folder / "bin"
    desk.environment["PATH"] = f"{bins}:/usr/bin:/bin"
    standin(bins, "npm", "true")
    words: list[str] = []
    with pytest.raises(BridgeError, match=r"was to install @test/tiny 1\.0\.0 and left nothing"):
        await install(desk.profile, desk.environment, family=Family(), tell=words.append)
    assert desk.folders == []
    manifest = 'mkdir -p node_modules/$1 && echo \'{"name":"\'$1\'","version":"\'$2\'"}\''
    made = f"made() {{ {manifest} >node_modules/$1/package.json; }}"
    standin(bins, "npm", f"{made}\nmade @test/tiny 1.0.0\nmade tiny-acp 0.1.0")
    found = await install(desk.profile, desk.environment, family=Family(), tell=words.append)
    assert found == find(desk.profile, desk.environment)
    # An install that lost its `.ready` is none: it is made anew in the same place. What others
    # have beside it is none of ours.
    for name in (".git", "mine"):
        (found.prefix.parent / name).mkdir()
    (found.prefix / READY).unlink()
    (found.prefix / "stale").touch()
    again = await install(desk.profile, desk.environment, family=Family(), tell=words.append)
    assert again.prefix == found.prefix
    assert not (found.prefix / "stale").exists()
    assert desk.folders == [".git", found.prefix.name, "mine"]
    where, tell = desk.environment, words.append
    assert await remove("..", None, where, tell=tell) == []
    assert await remove("tiny", "9.9.9", where, tell=tell) == []
    assert await remove("tiny", "1.0.0", where, tell=tell) == [found.prefix]
    assert desk.folders == [".git", "mine"]
    assert wait_until(lambda: marked(str(desk.folder)) == [])
