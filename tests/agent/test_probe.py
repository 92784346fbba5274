"""The probe takes down what an agent says of itself, whatever it does."""

import os
import re

import pytest

from bridge.agent.probe import Probed, probe
from bridge.io.process import Family
from tests.peers.agent import scripted

pytestmark = pytest.mark.anyio


async def probed(
    *options: str, version: int = 1, timeout: float = 20, session: bool = True
) -> Probed:
    return await probe(
        scripted(*options),
        version=version,
        env=os.environ,
        family=Family(),
        timeout=timeout,
        session=session,
    )


async def test_version_capabilities_modes_and_times_are_taken_down() -> None:
    found = await probed("modes=1", "without=fork,audio")
    assert (found.version, found.agent) == (1, {"name": "scripted", "version": "1"})
    assert {"loadSession", "promptCapabilities.image", "sessionCapabilities.resume"} <= set(
        found.capabilities
    )
    assert "sessionCapabilities.fork" not in found.capabilities
    assert found.modes == ["code (current)", "ask"]
    assert found.initialize is not None
    assert found.session is not None
    assert found.stop is not None
    assert found.exit == "exit code 0"
    assert found.error is None


async def test_another_version_is_asked_in_its_own_shape() -> None:
    result = '{"protocolVersion":2,"info":{"name":"x","version":"3"},"capabilities":{"session":{"delete":{}}}}'  # noqa: E501
    found = await probed(f"initialize={result}", version=2)
    assert (found.asked, found.version, found.agent["name"]) == (2, 2, "x")
    assert found.capabilities == ["session.delete"]


async def test_without_a_session_none_is_made() -> None:
    found = await probed(session=False)
    assert (found.session, found.session_error) == (None, None)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("initialize=silent", "initialize was not answered within 0.5 s"),
        ("initialize=error:-32600:no", r"initialize was refused: no \(-32600\)"),
        ("initialize=raw:42", "initialize was not answered"),
    ],
)
async def test_an_agent_that_cannot_be_initialized_is_told_why(option: str, words: str) -> None:
    found = await probed(option, timeout=0.5)
    assert found.error is not None
    assert re.search(words, found.error)


@pytest.mark.parametrize("version", ["true", '"1"', "1.0", "null"])
async def test_a_version_that_is_no_number_is_told(version: str) -> None:
    script = (
        f'read line; echo \'{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":{version}}}}}\''
    )
    found = await probe(
        ["sh", "-c", script], version=1, env=os.environ, family=Family(), timeout=20, session=True
    )
    assert found.version is None
    assert found.error is not None
    assert f"protocolVersion is no number: {version}" in found.error


async def test_a_refused_session_is_told_apart_from_a_failed_handshake() -> None:
    found = await probed("new=error:-32000:sign in")
    assert found.error is None
    assert found.session_error == "session/new was refused: sign in (-32000)"


async def test_noise_and_what_comes_unasked_are_told() -> None:
    found = await probed(f"start={b'banner'.hex()}0a", "early=2")
    assert found.noise == ["banner"]
    assert found.updates == ["available_commands_update"]


async def test_a_death_is_told_with_the_end_of_stderr() -> None:
    found = await probe(
        ["sh", "-c", "echo no node here >&2; exit 3"],
        version=1,
        env=os.environ,
        family=Family(),
        timeout=20,
    )
    assert found.error is not None
    assert "no node here" in found.error
    assert found.exit == "exit code 3"


async def test_a_command_that_does_not_exist_is_told() -> None:
    found = await probe(["/no/such"], version=1, env=os.environ, family=Family(), timeout=5)
    assert found.error is not None
    assert "/no/such" in found.error
