"""What a client does for its agent: answers, files, terminals; and what it has to bear."""

from conformance.check import Broken, NotTried, expect
from conformance.client.lab import SUITE, Lab, Play
from conformance.client.peer import OPTIONS
from conformance.wire import Json, compact, mapping


async def bears(lab: Lab, step: str) -> None:
    (await lab.session()).survived(step)


@SUITE.check(
    "rpc.unknown-request",
    "MUST",
    "JSON-RPC 2.0: 5.1",
    "A request for a method that is not known gets the error -32601.",
)
async def unknown_request(lab: Lab) -> None:
    play = await lab.session()
    play.survived("plain")
    answer = play.answer("ping-plain")
    code = mapping(answer.get("error")).get("code")
    expect(code == -32601, f"it was answered {compact(answer)}")


@SUITE.check(
    "rpc.unknown-notification",
    "MUST",
    "Extensibility: Custom Notifications",
    "A notification that is not known is ignored.",
)
async def unknown_notification(lab: Lab) -> None:
    await bears(lab, "notification")


@SUITE.check(
    "updates.unknown-kind",
    "MUST",
    "Extensibility",
    "An update of a kind that is not known is ignored.",
)
async def unknown_kind(lab: Lab) -> None:
    await bears(lab, "update-kind")


@SUITE.check(
    "updates.unknown-session",
    "SHOULD",
    "Prompt Turn",
    "An update for a session that is not known does no harm.",
)
async def unknown_session(lab: Lab) -> None:
    await bears(lab, "update-session")


@SUITE.check(
    "stdio.separators",
    "MUST",
    "Transports: stdio",
    "Messages end with a line feed alone: U+2028, U+2029 and U+0085 inside one do not end it.",
)
async def separators(lab: Lab) -> None:
    await bears(lab, "separators")


@SUITE.check(
    "stdio.split",
    "MUST",
    "Transports: stdio",
    "A message may arrive in pieces, split anywhere, also inside a character.",
)
async def split(lab: Lab) -> None:
    await bears(lab, "split")


@SUITE.check(
    "stdio.large",
    "MUST",
    "Transports: stdio",
    "A message has no greatest length: one of 2 MiB is read.",
)
async def large(lab: Lab) -> None:
    await bears(lab, "large")


async def asked(lab: Lab, step: str) -> Play:
    """The turn, if it got as far as that step."""
    play = await lab.session()
    if step not in play.steps:
        raise NotTried(f"the turn did not get as far as this: {play.state}")
    return play


@SUITE.check(
    "permission.answered",
    "MUST",
    "Tool Calls: Requesting Permission",
    "Permission requests are answered, each under its own id, also when two are open at once.",
)
async def permission_answered(lab: Lab) -> None:
    play = await asked(lab, "permissions")
    for ident in ("ask-1", 7001):
        if not play.answer(ident):
            raise Broken(f"{compact(ident)} was not answered", play.around("permissions"))


@SUITE.check(
    "permission.option",
    "MUST",
    "Tool Calls: Requesting Permission",
    "The outcome is cancelled, or selected with the id of one of the options.",
)
async def permission_option(lab: Lab) -> None:
    play = await asked(lab, "permissions")
    offered = {option["optionId"] for option in OPTIONS}
    for ident in ("ask-1", 7001):
        if not play.answer(ident):
            raise NotTried(f"{compact(ident)} was not answered")
        outcome = play.outcome(ident)
        chosen = outcome.get("outcome") == "selected" and outcome.get("optionId") in offered
        expect(
            chosen or outcome.get("outcome") == "cancelled" or "error" in play.answer(ident),
            f"{compact(sorted(offered))} were offered, the answer is {compact(play.answer(ident))}",
        )


@SUITE.check(
    "permission.taken-back",
    "MUST",
    "Cancellation",
    "A request taken back by $/cancel_request is still answered: with its result, or with -32800.",
)
async def taken_back(lab: Lab) -> None:
    play = await asked(lab, "taken-back")
    answer = play.answer("ask-2")
    if not answer:
        raise Broken("it was not answered", play.around("taken-back"))
    code = mapping(answer.get("error")).get("code", -32800)
    expect(code == -32800, f"it was answered {compact(answer)}")


async def served(lab: Lab, step: str, *path: str) -> Json:
    """The result of that request; raises NotTried where the capability is not advertised."""
    play = await asked(lab, step)
    value: object = play.capabilities
    for name in path:
        value = mapping(value).get(name)
    if value is not True:
        raise NotTried(f"clientCapabilities.{'.'.join(path)} is not advertised")
    answer = play.answer(step)
    expect("result" in answer, f"it was answered {compact(answer) if answer else 'never'}")
    return mapping(answer["result"])


@SUITE.check(
    "fs.read",
    "MUST",
    "File System: Reading Files",
    "A client that advertises fs.readTextFile gives the content of a file.",
)
async def read(lab: Lab) -> None:
    content = (await served(lab, "read", "fs", "readTextFile")).get("content")
    expect(content == "one\ntwo\n", f"the content is {compact(content)}")


@SUITE.check(
    "fs.write",
    "MUST",
    "File System: Writing Files",
    "A client that advertises fs.writeTextFile writes the file, and creates it.",
)
async def write(lab: Lab) -> None:
    await served(lab, "write", "fs", "writeTextFile")
    written = (await lab.session()).written
    expect(written is not None, "there is no such file")
    expect(written == "é\n", f"the file holds {written!r}")


@SUITE.check(
    "terminal.run",
    "MUST",
    "Terminals",
    "A client that advertises terminal runs a command, and tells its exit code and output.",
)
async def terminal(lab: Lab) -> None:
    terminal = (await served(lab, "create", "terminal")).get("terminalId")
    expect(isinstance(terminal, str), f"terminalId is {compact(terminal)}")
    code = (await served(lab, "wait_for_exit", "terminal")).get("exitCode")
    expect(code == 0, f"the exit code is {compact(code)}")
    output = (await served(lab, "output", "terminal")).get("output")
    expect("conformance" in str(output), f"the output is {compact(output)}")
    await served(lab, "release", "terminal")


@SUITE.check(
    "capabilities.refused",
    "SHOULD",
    "Initialization: Capabilities",
    "Requests for files and terminals that were not advertised are refused with an error.",
)
async def refused(lab: Lab) -> None:
    play = await asked(lab, "create")
    files = mapping(play.capabilities.get("fs"))
    advertised = {
        "read": files.get("readTextFile"),
        "write": files.get("writeTextFile"),
        "create": play.capabilities.get("terminal"),
    }
    missing = [step for step, given in advertised.items() if given is not True]
    if not missing:
        raise NotTried("the client advertises files and terminals")
    for step in missing:
        answer = play.answer(step)
        expect("error" in answer, f"{step}: answered {compact(answer) if answer else 'never'}")
