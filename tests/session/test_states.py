"""bridge.session.states: a directory a session, and none that outlives its daemon for long."""

import stat
from pathlib import Path

import anyio
import pytest

from bridge.errors import BridgeError
from bridge.session import states
from tests.peers.host import Host
from tests.session.placed import environment, profile

pytestmark = pytest.mark.anyio
MODEL = {"base_url": "http://127.0.0.1:1/v1", "name": "m"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


async def test_one_is_made_for_the_user_alone_and_goes_with_all_in_it(folder: Path):
    state = await states.make(None)
    assert state.path.parent == folder
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o700
    await anyio.Path(state.path / "deep").mkdir()
    await state.remove()
    assert not state.path.exists()


async def test_the_hosts_own_stays(tmp_path: Path):
    state = await states.make(str(tmp_path / "a/b"))
    await state.remove()
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o700
    assert (await states.make(str(tmp_path / "a/b"))).path == state.path


async def test_where_none_can_be_made_that_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "file").touch()
    with pytest.raises(BridgeError, match=r"agent_options\.state: .*file"):
        await states.make(str(folder / "file/x"))
    monkeypatch.setattr("tempfile.tempdir", str(folder / "file"))
    with pytest.raises(BridgeError, match=r"no directory for the agent's state: .*file"):
        await states.make(None)


async def test_those_in_use_and_those_of_others_are_left_alone(folder: Path):
    first = await states.make(None)
    (folder / "acp-mcp-bridge-other").mkdir()
    second = await states.make(None)
    assert first.path.exists()
    assert (folder / "acp-mcp-bridge-other").exists()
    await first.remove()
    await second.remove()
    assert not first.path.exists()
    assert not second.path.exists()
    assert (folder / "acp-mcp-bridge-other").exists()


def test_what_a_killed_daemon_has_left_is_removed_by_the_next(tmp_path: Path):
    own = {"TMPDIR": str(tmp_path)}
    config = {"agent": profile(tmp_path), "model": MODEL}
    with Host(tmp_path, environment=own) as living:
        held = Path(environment(living, "STATE", **config)["STATE"])
        killed = Host(tmp_path, environment=own)
        left = Path(environment(killed, "STATE", **config)["STATE"])
        killed.process.kill()
        killed.process.wait()
        assert left.exists()
        with Host(tmp_path, environment=own) as another:
            environment(another, "STATE", **config)
            assert not left.exists()
            assert held.exists()
            another.shutdown()
        living.shutdown()
        killed.dispose()
    assert not list(tmp_path.glob("acp-mcp-bridge-*"))
