"""The Python API for hosts, on each loop: real daemons, real agents, and nothing left of them."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge import __version__
from bridge.client import EVENTS, Bridge, Events, Session, TurnFailed
from bridge.errors import BridgeError
from bridge.wire import packets
from tests.peers.agent import AgentLog, scripted
from tests.peers.host import DAEMON
from tests.peers.processes import MARKER, survivors

pytestmark = pytest.mark.anyio
PATIENCE = 30


@dataclass(frozen=True)
class Place:
    """Where a test's daemons run: their environment, and what their agents wrote down."""

    env: dict[str, str]
    log: AgentLog


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Checks at the end that nothing the test started is left."""
    log = AgentLog(tmp_path / "agent.ndjson")
    marker = str(tmp_path)
    yield Place(os.environ | {MARKER: marker, "SCRIPTED_LOG": str(log.path)}, log)
    assert survivors(marker, 5) == []


@asynccontextmanager
async def talking(
    place: Place, *options: str, events: tuple[str, ...] = EVENTS, **config: Any
) -> AsyncIterator[tuple[Bridge, Session]]:
    """A daemon and a session with a scripted agent of these options."""
    with anyio.fail_after(PATIENCE):
        async with (
            Bridge.spawn(env=place.env, events=events) as bridge,
            bridge.session(command=scripted(*options), **config) as session,
        ):
            yield bridge, session


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def texts(events: Events, count: int) -> list[str]:
    """The texts of the next so many updates."""
    found = []
    async for event in events:
        found.append(event["update"]["content"]["text"])
        if len(found) == count:
            break
    return found


async def first(events: Events, name: str) -> dict[str, Any]:
    """The next event of that name."""
    async for event in events:
        if event["event"] == name:
            return event
    raise AssertionError(f"no {name} event came")


async def rest(events: Events) -> list[dict[str, Any]]:
    """All events until the iteration ends."""
    return [event async for event in events]


async def test_a_session_opens_is_prompted_and_says_goodbye(place: Place) -> None:
    agent = scripted('close_meta={"spent":1}')
    with anyio.fail_after(PATIENCE):
        async with Bridge.spawn(env=place.env) as bridge:
            assert bridge.hello["daemon"] == {"name": "acp-mcp-bridge", "version": __version__}
            async with bridge.session("one", command=agent, session_meta={"k": 1}) as session:
                assert session.opened["session_id"] == "s"
                assert session.opened["agent"]["name"] == "scripted"
                turn = await session.prompt("say é 北 ", [{"type": "text", "text": "dump"}])
                assert '"text": "say \\u00e9 \\u5317 "' in turn.reply
                assert (turn.stop_reason, turn.number, turn.outcome) == ("end_turn", 1, "completed")
                usage = 'result {"usage":{"totalTokens":7},"_meta":{"m":2},"stopReason":"odd"}'
                turn = await session.prompt(f"say hi\n{usage}")
                assert turn.response_metadata == {"m": 2}
                assert turn.usage == {"totalTokens": 7}
                assert (turn.number, turn.agent_stop_reason) == (2, "odd")
                assert turn.response["result"]["reply"] == turn.reply == "hi"
                assert await session.close() == {"spent": 1}
                assert await session.close() == {}
    assert place.log.messages("session/new")[0]["params"]["_meta"] == {"k": 1}
    assert place.log.methods().count("session/close") == 1


async def test_a_failed_turn_raises_with_what_had_come(place: Place) -> None:
    with anyio.fail_after(PATIENCE):
        async with Bridge.spawn(env=place.env) as bridge:
            async with bridge.session(command=scripted()) as session:
                error = '{"code":-32050,"message":"no","data":{"details":"worn out"}}'
                with pytest.raises(TurnFailed, match="worn out") as failed:
                    await session.prompt(f"say so far\nerror {error}")
                assert failed.value.turn.reply == "so far"
                assert failed.value.data == {"details": "worn out"}
                assert failed.value.code == "agent_error"
                assert failed.value.extra["agent_code"] == -32050
                with pytest.raises(TurnFailed) as failed:
                    await session.prompt("say slow\nwait cancel", turn_timeout=0.2)
                assert (failed.value.code, failed.value.turn.reply) == ("timeout", "slow")
                with pytest.raises(TurnFailed) as failed:
                    await session.prompt("say last words\nexit 3")
                assert failed.value.turn.reply == "last words"
                assert failed.value.turn.outcome == "failed"
                assert failed.value.code == "agent_exited"
                assert failed.value.origin == "agent"
                assert failed.value.extra["exit_code"] == 3
            async with bridge.session(command=scripted()) as session:
                assert (await session.prompt("say again")).reply == "again"


async def test_what_fails_without_a_turn_raises_by_code(place: Place) -> None:
    with anyio.fail_after(PATIENCE):
        async with Bridge.spawn(env=place.env) as bridge:
            with pytest.raises(BridgeError, match="no-agent") as failed:
                async with bridge.session(command=["/no-agent"]):
                    raise AssertionError("it was opened")
            assert failed.value.code == "spawn_failed"
            with pytest.raises(BridgeError, match="nonsense") as failed:
                await bridge.request("nonsense")
            assert (failed.value.code, failed.value.origin) == ("invalid_request", "host")
            async with bridge.session(command=scripted()) as session:
                with pytest.raises(BridgeError, match="steering") as failed:
                    await session.steer("over here")
                assert failed.value.code == "unsupported"
                turn = await session.prompt("say still here")
                assert turn.reply == "still here"


async def test_steering_sending_and_cancelling(place: Place) -> None:
    async with talking(place, "with=steering") as (_, session):
        events, replies = session.events(), []

        async def prompt(text: str) -> None:
            replies.append(await session.prompt(text))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt, "say go\nwait steer\nwait cancel")
            assert await texts(events, 1) == ["go"]
            receipt = await session.steer("also X", message_id="m1")
            assert receipt == {"outcome": "injected"}
            assert '"text": "also X"' in (await texts(events, 1))[0]
            receipt = await session.send("say queued", message_id="m2")
            assert receipt == {"outcome": "accepted", "message_id": "m2"}
            await session.cancel()
        assert replies[0].stop_reason == "cancelled"
        assert replies[0].outcome == "cancelled"
        # A cancel starts no work unasked: the message goes out with the next prompt.
        await session.prompt("say next")
        blocks = [block["text"] for block in place.log.prompts()[-1]]
        assert blocks == ["say queued", "\n\n", "say next"]
        await session.send([{"type": "text", "text": "say on its own"}], message_id="m3")
        ended = [await first(events, "turn"), await first(events, "turn")]
        assert [event["state"] for event in ended] == ["started", "ended"]
        assert ended[1]["message_ids"] == ["m3"]
        assert ended[1]["result"]["reply"] == "on its own"
        await session.cancel()


async def test_events_come_in_order_to_those_they_concern_and_end_with_the_session(
    place: Place,
) -> None:
    with anyio.fail_after(PATIENCE):
        async with Bridge.spawn(env=place.env) as bridge:
            everything = bridge.events()
            async with (
                bridge.session("a", command=scripted()) as one,
                bridge.session("b", command=scripted()) as two,
            ):
                of_one, of_two = one.events(), two.events()
                await one.prompt("say 1\nsay 2")
                assert await texts(of_one, 2) == ["1", "2"]
                await two.prompt("say 3")
                await one.prompt("say 4")
                of_one.close()
                of_one.close()
                await one.prompt("say unheard")
            assert [e["update"]["content"]["text"] for e in await rest(of_one)] == ["4"]
            told = [e["update"]["content"]["text"] for e in await rest(of_two) if "update" in e]
            assert told == ["3"]
            # After the end there is nothing to wait for.
            assert await rest(two.events()) == []
        events = await rest(everything)
        assert [e["seq"] for e in events] == sorted(e["seq"] for e in events)
        assert {e["session"] for e in events} == {"a", "b"}
        assert "unheard" in str(events)
        assert await rest(bridge.events()) == []


async def test_permissions_are_the_hosts_to_give(place: Place) -> None:
    options = (
        '[{"optionId":"y","name":"Y","kind":"allow_once"},'
        '{"optionId":"n","name":"N","kind":"reject_once"}]'
    )
    answers = ["allow", "deny", "cancel", {"option_id": "n"}]
    async with talking(place, events=("permission",), permission="ask") as (_, session):
        events, replies = session.events(), []

        async def prompt() -> None:
            text = "\n".join([f"permission {options}"] * len(answers))
            replies.append((await session.prompt(text)).reply)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt)
            for answer in answers:
                event = await first(events, "permission")
                assert [option["optionId"] for option in event["options"]] == ["y", "n"]
                await session.answer_permission(event, answer)
        with pytest.raises(BridgeError, match="permission") as failed:
            await session.answer_permission(event, "allow")
        assert failed.value.code == "invalid_request"
    chosen = [part.split('"')[0] for part in replies[0].split('"optionId": "')[1:]]
    assert chosen == ["y", "n", "n"]
    assert replies[0].count("cancelled") == 1


async def test_many_sessions_at_once_each_get_their_own(place: Place) -> None:
    replies: dict[str, list[str]] = {}

    async def work(bridge: Bridge, name: str) -> None:
        async with bridge.session(name, command=scripted()) as session:
            turns = [await session.prompt(f"say {name}.{number}") for number in range(3)]
            replies[name] = [turn.reply for turn in turns]

    names = [f"s{number}" for number in range(8)]
    with anyio.fail_after(PATIENCE):
        async with Bridge.spawn(env=place.env) as bridge, anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(work, bridge, name)
    assert replies == {name: [f"{name}.{number}" for number in range(3)] for name in names}


async def test_a_daemon_that_dies_in_mid_turn_fails_what_waits_for_it(place: Place) -> None:
    failures: list[BridgeError] = []
    async with talking(place) as (bridge, session):
        events = session.events()

        async def prompt() -> None:
            with pytest.raises(BridgeError, match="exit code -9") as failed:
                await session.prompt("say begun\nhang")
            failures.append(failed.value)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt)
            assert await texts(events, 1) == ["begun"]
            status = await bridge.request("status")
            os.kill(parent(status["sessions"][""]["agent_pid"]), signal.SIGKILL)
        assert failures[0].code == "internal"
        assert await rest(events) == []
        with pytest.raises(BridgeError, match="the daemon ended"):
            await session.prompt("anybody?")


async def test_a_daemon_that_does_not_start_is_an_error_that_says_so(place: Place) -> None:
    words: list[bytes] = []
    with anyio.fail_after(PATIENCE):
        with pytest.raises(BridgeError, match="exit code 2"):
            async with Bridge.spawn(
                env=place.env, options=["--loop", "nonsense"], on_stderr=words.append
            ):
                raise AssertionError("it was entered")
        assert b"nonsense" in b"".join(words)
        with pytest.raises(FileNotFoundError):
            async with Bridge.spawn(env=place.env, daemon=["/no-daemon"]):
                raise AssertionError("it was entered")


CLOSES = "import os, time; os.closerange(1, 99); time.sleep(600)"
"""Its stdout, and what uvloop leaves of that in a child."""


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo hi", "no packet"),
        ("echo 5", "no packet"),
        ("printf '\\000\\377\\000\\000\\000\\000\\000\\000'; exec sleep 600", "no packet.*ceiling"),
        (f"exec {sys.executable} -c '{CLOSES}'", "closed its stdout"),
        ("exit 3", "exit code 3"),
    ],
)
async def test_a_program_that_is_no_daemon_is_an_error_that_says_so(
    script: str, words: str
) -> None:
    with anyio.fail_after(PATIENCE), pytest.raises(BridgeError, match=words) as caught:
        async with Bridge.spawn(daemon=["sh", "-c", script]):
            raise AssertionError("it was entered")
    assert caught.value.code == "internal"


async def test_what_no_packet_can_hold_is_refused_and_nothing_is_sent(place: Place) -> None:
    async with talking(place) as (_, session):
        with pytest.raises(BridgeError, match="cannot be written as JSON") as caught:
            await session.prompt(object())  # type: ignore[arg-type]
        assert caught.value.code == "invalid_request"
        with pytest.raises(BridgeError, match="nothing was sent") as caught:
            await session.prompt("x" * packets.CEILING)
        assert caught.value.code == "limit"
        assert (await session.prompt("say here")).reply == "here"
    assert len(place.log.prompts()) == 1


async def test_what_the_body_raises_comes_out_as_it_is(place: Place) -> None:
    raised = KeyError("mine")

    async def work() -> None:
        async with talking(place):
            raise raised

    with pytest.raises(KeyError) as caught:
        await work()
    assert caught.value is raised
    assert "session/close" in place.log.methods()


async def test_leaving_in_mid_turn_ends_the_turn_and_its_agent(place: Place) -> None:
    async with anyio.create_task_group() as tasks, talking(place) as (_, session):
        events = session.events()
        tasks.start_soon(session.prompt, "say begun\nwait cancel")
        assert await texts(events, 1) == ["begun"]
    assert "session/cancel" in place.log.methods()


async def test_a_cancel_around_the_bridge_still_ends_it_in_order(place: Place) -> None:
    with anyio.CancelScope() as scope:
        async with talking(place) as (_, session):
            assert (await session.prompt("say hi")).reply == "hi"
            scope.cancel()
            await session.prompt("wait cancel")
    assert scope.cancelled_caught
    assert "session/close" in place.log.methods()
    assert len(place.log.events("eof")) == 1


@pytest.mark.parametrize("size", [1, 1 << 22])
async def test_a_daemon_that_is_stopped_holds_neither_a_cancel_nor_the_end(
    place: Place, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("bridge.client._ENDING", 0.2)
    monkeypatch.setattr("bridge.client._TERMINATING", 0.2)
    with anyio.fail_after(PATIENCE):
        async with Bridge.spawn(env=place.env) as bridge:
            os.kill(bridge._process.pid, signal.SIGSTOP)
            with anyio.move_on_after(0.2) as waiting:
                await bridge.request("status", padding="x" * size)
    assert waiting.cancelled_caught
    assert bridge._process.returncode == -signal.SIGKILL


async def test_a_wait_that_is_given_up_leaves_the_rest_in_step(place: Place) -> None:
    async with talking(place) as (_, session):
        events = session.events()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, "say begun\nwait cancel\nsay late")
            assert await texts(events, 1) == ["begun"]
            tasks.cancel_scope.cancel()
        await session.cancel()
        assert (await session.prompt("say mine")).reply == "mine"
        # The turn that nobody waited for had ended before, and was told.
        assert await texts(events, 2) == ["late", "mine"]


async def test_an_opening_that_is_given_up_leaves_the_name_free(place: Place) -> None:
    silent = scripted("initialize=silent")
    with anyio.fail_after(PATIENCE):
        async with Bridge.spawn(env=place.env) as bridge:
            with anyio.move_on_after(0.3) as given_up:
                async with bridge.session("it", command=silent):
                    raise AssertionError("it was opened")
            assert given_up.cancelled_caught
            async with bridge.session("it", command=scripted()) as session:
                assert (await session.prompt("say open")).reply == "open"


async def test_the_daemons_stderr_and_options_are_the_hosts(place: Place, tmp_path: Path) -> None:
    heard: list[bytes] = []
    trace = tmp_path / "run.trace"
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    options = ["--record", str(trace)]
    with anyio.fail_after(PATIENCE):
        async with (
            Bridge.spawn(
                daemon=[*DAEMON, "stream"],
                options=options,
                env=place.env,
                cwd=str(folder),
                on_stderr=heard.append,
            ) as bridge,
            bridge.session(command=scripted("stderr=400")) as session,
        ):
            assert (await session.prompt("cwd")).reply == str(folder)
            assert (await session.prompt("size 3000000")).reply == "x" * 3_000_000
    assert b"eeee" in b"".join(heard)
    assert trace.read_bytes().startswith(b'{"trace":1')
