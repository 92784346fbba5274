"""Session modes and configuration options, where session/new offers any."""

from conformance.agent.checks import SUITE
from conformance.agent.client import Client
from conformance.agent.lab import Lab
from conformance.check import NotTried, expect
from conformance.wire import Json, compact, mapping, objects


async def modes(lab: Lab) -> tuple[Client, str, str, list[str]]:
    """The client, its session, the session's mode and all that there are."""
    client, session = await lab.session()
    offered = mapping(lab.setup.get("modes"))
    if not offered:
        raise NotTried("session/new gives no modes")
    ids = [str(mode.get("id")) for mode in objects(offered.get("availableModes"))]
    return client, session, str(offered.get("currentModeId")), ids


@SUITE.check(
    "mode.current",
    "MUST",
    "Session Modes: Initial State",
    "The current mode is one of the available ones.",
)
async def mode_current(lab: Lab) -> None:
    _, _, current, ids = await modes(lab)
    expect(current in ids, f"{current!r} is none of {compact(ids)}")


@SUITE.check(
    "mode.set",
    "MUST",
    "Session Modes: Setting the Current Mode",
    "session/set_mode accepts every available mode.",
)
async def mode_set(lab: Lab) -> None:
    client, session, current, ids = await modes(lab)
    for mode in [*(mode for mode in ids if mode != current), current]:
        await client.request("session/set_mode", {"sessionId": session, "modeId": mode})


@SUITE.check(
    "mode.unknown",
    "SHOULD",
    "Session Modes: Setting the Current Mode",
    "A mode that is not available is refused.",
)
async def mode_unknown(lab: Lab) -> None:
    client, session, _, _ = await modes(lab)
    wanted = {"sessionId": session, "modeId": "conformance-none"}
    await (await client.start("session/set_mode", wanted)).error()


async def options(lab: Lab) -> tuple[Client, str, list[Json]]:
    """The client, its session, and the configuration options."""
    client, session = await lab.session()
    offered = objects(lab.setup.get("configOptions"))
    if not offered:
        raise NotTried("session/new gives no configOptions")
    return client, session, offered


def values(option: Json) -> list[str]:
    """The values of a select option, those in groups too."""
    found: list[str] = []
    for entry in objects(option.get("options")):
        found += values(entry) if "options" in entry else [str(entry.get("value"))]
    return found


def selects(found: list[Json]) -> list[Json]:
    chosen = [option for option in found if option.get("type", "select") == "select"]
    if not chosen:
        raise NotTried("none of the configOptions is a select")
    return chosen


@SUITE.check(
    "config.current",
    "MUST",
    "Session Config Options: Initial State",
    "The current value of an option is one of its values.",
)
async def config_current(lab: Lab) -> None:
    _, _, found = await options(lab)
    for option in selects(found):
        value = option.get("currentValue")
        expect(
            value in values(option),
            f"{option.get('id')}: {compact(value)} is none of {compact(values(option))}",
        )


@SUITE.check(
    "config.boolean",
    "MUST",
    "Session Config Options: Boolean Options",
    "Boolean options are given to clients only that advertised session.configOptions.boolean.",
)
async def config_boolean(lab: Lab) -> None:
    _, _, found = await options(lab)
    unasked = [option.get("id") for option in found if option.get("type") == "boolean"]
    expect(not unasked, f"boolean, unasked: {compact(unasked)}")


@SUITE.check(
    "config.set",
    "MUST",
    "Session Config Options: Setting",
    "session/set_config_option is answered with all options, the new value among them.",
)
async def config_set(lab: Lab) -> None:
    client, session, found = await options(lab)
    option = max(selects(found), key=lambda one: len(values(one)))
    now = option.get("currentValue")
    for value in [*[v for v in values(option) if v != now][:1], now]:
        if value not in values(option):
            # Some values are there only as long as they are the current one.
            continue
        wanted = {"sessionId": session, "configId": option.get("id"), "value": value}
        result = await client.request("session/set_config_option", wanted)
        given = objects(result.get("configOptions"))
        after = {one.get("id"): one.get("currentValue") for one in given}
        expect(after.get(option.get("id")) == value, f"{option.get('id')} is not {value!r} now")
        option = next(one for one in given if one.get("id") == option.get("id"))
        missing = [one.get("id") for one in found if one.get("id") not in after]
        expect(not missing, f"missing in the answer: {compact(missing)}")


@SUITE.check(
    "config.unknown",
    "SHOULD",
    "Session Config Options: Setting",
    "A value that the option does not have is refused.",
)
async def config_unknown(lab: Lab) -> None:
    client, session, found = await options(lab)
    option = selects(found)[0]
    wanted = {"sessionId": session, "configId": option.get("id"), "value": "conformance-none"}
    await (await client.start("session/set_config_option", wanted)).error()
