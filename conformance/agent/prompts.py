"""Turns: the order of what comes, the stop reason, and what a prompt may hold."""

from contextlib import suppress

from conformance.agent.checks import SUITE
from conformance.agent.client import content
from conformance.agent.lab import Lab
from conformance.check import NotTried, expect
from conformance.wire import Json, compact, mapping

REASONS = {"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="


@SUITE.check(
    "prompt.stop-reason",
    "MUST",
    "Prompt Turn: Stop Reasons",
    "session/prompt is answered, when the turn has ended, with one of the stop reasons.",
)
async def stop_reason(lab: Lab) -> None:
    client, session = await lab.session()
    turn = await client.prompt(session, lab.options.prompt)
    reason = await turn.reason()
    expect(reason in REASONS, f"the stop reason is {compact(reason)}")


@SUITE.check(
    "prompt.reply",
    "SHOULD",
    "Prompt Turn: Agent Reports Output",
    "What the agent says is in agent_message_chunk updates before the response.",
)
async def reply(lab: Lab) -> None:
    turn = await lab.turn()
    expect(turn.text, f"no text; the updates were {content(turn.updates) or 'none'}")


@SUITE.check(
    "prompt.nothing-after",
    "SHOULD",
    "Prompt Turn: Check for Completion",
    "When the response has been sent, the turn is over: no message or tool call of it follows.",
)
async def nothing_after(lab: Lab) -> None:
    client, session = await lab.session()
    turn = await client.prompt(session, lab.options.prompt)
    await lab.refuse_error(turn)
    ping = await client.ping()
    late = content(client.updates(session, turn.call.at, ping.at))
    expect(not late, f"after the response came {', '.join(late)}")


@SUITE.check(
    "prompt.again",
    "MUST",
    "Prompt Turn",
    "When a turn has ended, the session takes the next prompt.",
)
async def again(lab: Lab) -> None:
    first = await lab.turn()
    second = await first.client.prompt(first.session, lab.options.prompt)
    expect(await second.reason() in REASONS, "the second prompt got no stop reason")


async def accepts(lab: Lab, block: Json) -> None:
    turn = await lab.turn()
    prompt = await turn.client.prompt(turn.session, lab.options.prompt, block)
    await prompt.reason()


@SUITE.check(
    "prompt.resource-link",
    "MUST",
    "Content: Resource Link",
    "Every agent takes text and resource links in prompts.",
)
async def resource_link(lab: Lab) -> None:
    link = {"type": "resource_link", "uri": f"file://{lab.cwd}/none.txt", "name": "none.txt"}
    await accepts(lab, link)


@SUITE.check(
    "prompt.image",
    "MUST",
    "Content: Image Content",
    "An agent that advertises image takes images in prompts.",
)
async def image(lab: Lab) -> None:
    lab.advertises(await lab.client(), "promptCapabilities", "image")
    await accepts(lab, {"type": "image", "mimeType": "image/png", "data": PNG})


@SUITE.check(
    "prompt.audio",
    "MUST",
    "Content: Audio Content",
    "An agent that advertises audio takes audio in prompts.",
)
async def audio(lab: Lab) -> None:
    lab.advertises(await lab.client(), "promptCapabilities", "audio")
    await accepts(lab, {"type": "audio", "mimeType": "audio/wav", "data": WAV})


@SUITE.check(
    "prompt.embedded",
    "MUST",
    "Content: Embedded Resource",
    "An agent that advertises embeddedContext takes embedded resources in prompts.",
)
async def embedded(lab: Lab) -> None:
    lab.advertises(await lab.client(), "promptCapabilities", "embeddedContext")
    resource = {"uri": f"file://{lab.cwd}/none.txt", "mimeType": "text/plain", "text": "none"}
    await accepts(lab, {"type": "resource", "resource": resource})


@SUITE.check(
    "prompt.session-id",
    "MUST",
    "Prompt Turn",
    "Updates and permission requests carry the id of a session of this connection.",
)
async def session_id(lab: Lab) -> None:
    await lab.turn()
    strange = {
        str(session)
        for client in lab.clients
        for message in client.messages
        if message.get("method") in ("session/update", "session/request_permission")
        and (session := mapping(message.get("params")).get("sessionId")) not in client.sessions
    }
    expect(not strange, f"for sessions that no client was given: {', '.join(sorted(strange))}")


@SUITE.check(
    "prompt.unasked",
    "MUST",
    "Initialization: Capabilities",
    "A client that advertises no files, terminals or elicitation is not asked for any.",
)
async def unasked(lab: Lab) -> None:
    await lab.turn()
    with suppress(NotTried):  # what has come so far is judged all the same
        await lab.tool_turn()
    asked = {
        str(message.get("method"))
        for client in lab.clients
        for message in client.messages
        if not client.capabilities
        and str(message.get("method")).startswith(("fs/", "terminal/", "elicitation/"))
    }
    expect(not asked, f"asked for {', '.join(sorted(asked))}")
