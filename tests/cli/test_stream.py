"""`stream`: how the daemon is started, and settings that are wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.agent import scripted
from tests.peers.host import DAEMON, Host

WAYS = [DAEMON, [*DAEMON, "stream"], [sys.executable, "-m", "bridge"], [*DAEMON, "--loop", "trio"]]


@pytest.mark.parametrize("command", WAYS, ids=["bare", "named", "module", "options"])
def test_each_way_of_starting_it_serves_a_host(tmp_path: Path, command: list[str]) -> None:
    with Host(tmp_path, command=command) as host:
        assert host.reply(scripted(), "say hi") == "hi"
        host.shutdown()


@pytest.mark.parametrize("name", ["settings.toml", "settings.json"])
def test_a_settings_file_holds_for_every_session(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    values = {"log_level": "info", "defaults": {"command": scripted(), "system_prompt": "Be kind."}}
    if name.endswith(".toml"):
        lines = ['log_level = "info"', "[defaults]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in values["defaults"].items()]
        file.write_text("\n".join(lines))
    else:
        file.write_text(json.dumps(values))
    with Host(tmp_path, "--config", str(file)) as host:
        said = host.call("prompt", config={"user_contents": ["dump"]})["result"]["reply"]
        assert "Be kind." in said
        own = {"user_contents": ["dump"], "system_prompt": "Be quick."}
        said = host.call("prompt", session="other", config=own)["result"]["reply"]
        assert "Be quick." in said
        assert "kind" not in said
        host.shutdown()


@pytest.mark.parametrize("started", [[], ["stream"], ["stream", "--record", "x"]])
def test_wrong_settings_are_one_line_and_nothing_is_served(
    tmp_path: Path, started: list[str]
) -> None:
    ended = subprocess.run(
        [*DAEMON, *started],
        input=b'{"id":1,"operation":"status"}\n',
        env=os.environ | {"BRIDGE_LOOP": "twisted"},
        cwd=tmp_path,
        capture_output=True,
        timeout=30,
    )
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr.count(b"\n") == 1
    assert b"twisted" in ended.stderr
    assert b"BRIDGE_" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    place = tmp_path / "no" / "such" / "folder" / "run.trace"
    ended = subprocess.run(
        [*DAEMON, "stream", "--record", str(place)], input=b"", capture_output=True, timeout=30
    )
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert str(place).encode() in ended.stderr
    assert b"Traceback" not in ended.stderr
