"""Host protocol §5: however it ends, nothing is left."""

import signal

from conformance.check import expect
from conformance.daemon.host import Host, result
from conformance.daemon.lab import SUITE, Lab, agent, config
from conformance.wire import compact

END = "Host protocol: The daemon's end"


async def busy(lab: Lab) -> tuple[Host, object]:
    """A daemon whose agent is in the middle of a turn; the prompt's id."""
    host = await lab.fresh("C")
    await lab.hello(host)
    running = await host.send("prompt", config=config("wait"))
    await host.said("waiting")
    return host, running


async def gone(lab: Lab, host: Host, code: int) -> None:
    found = await host.child.exit_code(lab.timeout)
    expect(found is not None, f"it still runs after {lab.timeout:g} s")
    expect(found == code, f"the exit code is {found}, not {code}")
    left = await host.child.survivors(lab.timeout)
    expect(not left, f"still running: {'; '.join(left)}")


@SUITE.check(
    "end.input",
    "MUST",
    END,
    "At the end of its input a daemon answers open turns, ends its agents and exits with 0.",
)
async def end_of_input(lab: Lab) -> None:
    host, running = await busy(lab)
    await host.child.close_stdin()
    response = await host.answer(running)
    expect(set(result(response)), f"the response is {compact(response)}")
    await gone(lab, host, 0)


@SUITE.check("end.term", "MUST", END, "SIGTERM ends everything, agents too; the exit code is 143.")
async def term(lab: Lab) -> None:
    host, _ = await busy(lab)
    host.child.signal(signal.SIGTERM)
    await gone(lab, host, 143)


@SUITE.check("end.interrupt", "MUST", END, "SIGINT ends everything; the exit code is 130.")
async def interrupt(lab: Lab) -> None:
    host, _ = await busy(lab)
    host.child.signal(signal.SIGINT)
    await gone(lab, host, 130)


@SUITE.check("end.kill", "MUST", END, "A daemon that is killed leaves no agent behind.")
async def kill(lab: Lab) -> None:
    host, _ = await busy(lab)
    host.child.signal(signal.SIGKILL)
    await gone(lab, host, -signal.SIGKILL)


@SUITE.check(
    "end.deaf",
    "MUST",
    END,
    "shutdown is answered, and everything ends, also with an agent deaf to its end.",
)
async def deaf(lab: Lab) -> None:
    host = await lab.fresh("C")
    await lab.hello(host)
    settings = config("say hello", command=agent("deaf"), close_grace=0.5)
    await host.good("prompt", config=settings)
    await host.good("shutdown")
    await gone(lab, host, 0)


@SUITE.check(
    "end.stdout", "MUST", END, "A host that closes the daemon's stdout ends it as the end of input."
)
async def stdout(lab: Lab) -> None:
    host, _ = await busy(lab)
    host.child.stdout.close()
    left = await host.child.survivors(lab.timeout)
    expect(not left, f"still running: {'; '.join(left)}")
