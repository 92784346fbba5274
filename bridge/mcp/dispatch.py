"""What is done for each request of a caller, whatever it came over.

Rules: what is not known here goes to the server where there is one alone, and is refused where
there are several; a failed tool call is a result that the model can read, everything else that
fails is an error. Called by the fronts (`http_front`, `lines_front`) and for the host's calls.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.mcp import eras, messages, mirrored, resources
from bridge.mcp.call import GaveUp, Plan, moment, reads, unsaid
from bridge.mcp.messages import Answer, Members
from bridge.mcp.names import DuplicateName
from bridge.mcp.relay import Caller
from bridge.mcp.resources import Ambiguous
from bridge.mcp.view import Found, View
from bridge.wire import codec
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND
from protocol_schemas.mcp import Hints, ToolPolicy

Json = dict[str, Any]


@dataclass
class Inbound:
    """A request. `headers`: those of a modern HTTP request, by lower-case name, to be checked
    against its arguments; None where there are none; `began`: the moment it came; that of a request
    which no turn's cancel ends is infinite."""

    view: View
    caller: Caller
    method: str
    params: Members
    headers: Mapping[str, Sequence[str]] | None = None
    began: float = field(default_factory=moment)


async def answered(request: Inbound) -> Answer:
    """The answer to a request, in the caller's era; raises nothing but cancellation."""
    handler = _HANDLERS.get(request.method, _passed_on)
    try:
        answer = await handler(request)
    except GaveUp as error:
        answer = messages.error(INTERNAL_ERROR, str(error), {eras.FAILURE_META: error.details})
    except (DuplicateName, Ambiguous) as error:
        code = INTERNAL_ERROR if isinstance(error, DuplicateName) else RESOURCE_NOT_FOUND
        answer = messages.error(code, str(error))
    if request.caller.client.era == "modern" and answer.result is not None:
        return Answer(completed(answer.result, cacheable=request.method in _CACHEABLE))
    return answer


def completed(result: Raw, *, cacheable: bool) -> Raw:
    """A result with what the modern era requires of it, where an older server left it out."""
    if cacheable:
        result = messages.with_member(result, "cacheScope", b'"private"')
        result = messages.with_member(result, "ttlMs", b"0")
    return messages.with_member(result, "resultType", b'"complete"')


# -- tools --------------------------------------------------------------------------------------


async def _list_tools(request: Inbound) -> Answer:
    view, client = request.view, request.caller.client
    await view.fresh(client)
    tools = view.tool_list(client)
    lone = view.lone
    if lone is None:
        return messages.result({"tools": tools})
    catalogue = view.hub.catalogue(lone.name, client)
    if not catalogue.known:
        words = f"MCP server {lone.name!r} cannot be listed: {catalogue.failure or 'no answer yet'}"
        return messages.error(INTERNAL_ERROR, words)
    return messages.result({"tools": tools, **catalogue.rest})


async def _call_tool(request: Inbound) -> Answer:
    name = _text(request.params, "name")
    if name is None:
        return messages.error(INVALID_PARAMS, "tools/call: params.name must be a string")
    found = await request.view.find_tool(name, request.caller.client)
    if found is None:
        return messages.error(INVALID_PARAMS, f"Unknown tool: {name}{_who_is_down(request)}")
    arguments = request.params.get("arguments", Raw(b"null"))
    if bytes(arguments) == b"null":
        arguments = Raw(b"{}")
    elif messages.members(arguments) is None:
        return tool_failure(f"Nothing was called: the arguments of {name!r} must be a JSON object.")
    if (wrong := _header_fault(request, found, arguments)) is not None:
        return messages.error(eras.HEADER_MISMATCH, wrong)
    plan = _tool_plan(found, {**request.params, "arguments": arguments}, request.began)
    hub, caller = request.view.hub, request.caller
    try:
        if caller.client.era == "modern" and caller.client.can_be_asked:
            if (resumed := await hub.parked.resume(caller, request.params)) is not None:
                return resumed
            return await hub.parked.begin(caller, lambda caller: hub.answer(plan, caller))
        return await hub.answer(plan, caller)
    except GaveUp as error:
        return tool_failure(str(error), error.details)


def _tool_plan(found: Found, params: Members, began: float) -> Plan:
    policy = found.server.policy.tools.get(found.name, ToolPolicy())

    def mirrors() -> list[mirrored.Mirror]:
        return [] if found.tool is None else found.tool.mirrors()

    return Plan(
        found.server,
        "tools/call",
        {**params, "name": found.name},
        "Tool",
        found.name,
        lambda: None if found.tool is None else found.tool.hints,
        delivery=policy.delivery,
        timeout=policy.timeout,
        mirrors=mirrors,
        relist=found.catalogue.refresh,
        began=began,
    )


def tool_failure(words: str, details: Json | None = None) -> Answer:
    """A failed call as the model is to read it."""
    result: Json = {"content": [{"type": "text", "text": words}], "isError": True}
    if details is not None:
        result["_meta"] = {eras.FAILURE_META: details}
    return messages.result(result)


def _header_fault(request: Inbound, found: Found, arguments: Raw) -> str | None:
    if request.headers is None or found.tool is None:
        return None
    mirrors = found.tool.mirrors()
    return mirrored.mismatch(mirrors, codec.decode(arguments), request.headers) if mirrors else None


def _who_is_down(request: Inbound) -> str:
    down = [
        f"{catalogue.server.name!r} ({catalogue.failure})"
        for catalogue in request.view.catalogues(request.caller.client).values()
        if catalogue.failure is not None and not catalogue.known
    ]
    return f" (not listed: MCP server {', '.join(down)})" if down else ""


# -- the rest -----------------------------------------------------------------------------------


async def _list(request: Inbound) -> Answer:
    if request.view.lone is None:
        return await resources.merged(request.view, request.method, request.caller)
    return await _ask_lone(request, pages=True)


async def _read_resource(request: Inbound) -> Answer:
    uri = _text(request.params, "uri")
    if uri is None:
        return messages.error(INVALID_PARAMS, f"{request.method}: params.uri must be a string")
    if request.view.lone is not None:
        return await _ask_lone(request)
    server = await resources.owner_of_uri(request.view, uri, request.caller)
    plan = Plan(server, request.method, request.params, "Resource", uri, reads)
    return await request.view.hub.answer(plan, request.caller)


async def _get_prompt(request: Inbound) -> Answer:
    name = _text(request.params, "name")
    if name is None:
        return messages.error(INVALID_PARAMS, "prompts/get: params.name must be a string")
    if request.view.lone is not None:
        return await _ask_lone(request)
    owner = await resources.owner_of_prompt(request.view, name, request.caller)
    if owner is None:
        return messages.error(INVALID_PARAMS, f"Unknown prompt: {name}")
    server, own = owner
    params = {**request.params, "name": Raw(codec.encode(own))}
    plan = Plan(server, request.method, params, "Prompt", own, reads)
    return await request.view.hub.answer(plan, request.caller)


async def _complete(request: Inbound) -> Answer:
    if request.view.lone is not None:
        return await _ask_lone(request)
    ref = messages.members(request.params.get("ref", Raw(b"null"))) or {}
    params: Json = dict(request.params)
    if (uri := _text(ref, "uri")) is not None:
        server = await resources.owner_of_uri(request.view, uri, request.caller)
    elif (name := _text(ref, "name")) is not None:
        owner = await resources.owner_of_prompt(request.view, name, request.caller)
        if owner is None:
            return messages.error(INVALID_PARAMS, f"Unknown prompt: {name}")
        server, own = owner
        params["ref"] = {**ref, "name": own}
    else:
        return messages.error(INVALID_PARAMS, "completion/complete: params.ref names nothing")
    plan = Plan(server, request.method, params, "Request", request.method, reads)
    return await request.view.hub.answer(plan, request.caller)


async def _passed_on(request: Inbound) -> Answer:
    """A method that is not known here."""
    if request.view.lone is None:
        return messages.error(METHOD_NOT_FOUND, f"Method not found: {request.method}")
    return await _ask_lone(request, unsaid)


async def _ask_lone(
    request: Inbound, hints: Callable[[], Hints] = reads, *, pages: bool = False
) -> Answer:
    server = request.view.lone
    assert server is not None
    plan = Plan(
        server, request.method, request.params, "Request", request.method, hints, pages=pages
    )
    return await request.view.hub.answer(plan, request.caller)


async def _ping(request: Inbound) -> Answer:
    return messages.result({})


async def _discover(request: Inbound) -> Answer:
    view = request.view
    await view.met("modern")
    said = view.presentation("modern")
    return messages.result(
        {
            "supportedVersions": [eras.MODERN, *eras.LEGACY_VERSIONS],
            "capabilities": view.capabilities("modern"),
            "_meta": {eras.SERVER_INFO_KEY: said.pop("serverInfo")},
            **said,
        }
    )


def _text(params: Mapping[str, Raw], name: str) -> str | None:
    value = codec.decode(params[name]) if name in params else None
    return value if isinstance(value, str) else None


_HANDLERS: dict[str, Callable[[Inbound], Awaitable[Answer]]] = {
    "ping": _ping,
    "server/discover": _discover,
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "resources/list": _list,
    "resources/templates/list": _list,
    "prompts/list": _list,
    "resources/read": _read_resource,
    "resources/subscribe": _read_resource,
    "resources/unsubscribe": _read_resource,
    "prompts/get": _get_prompt,
    "completion/complete": _complete,
}
_CACHEABLE = frozenset(
    (
        *("server/discover", "tools/list", "resources/list", "resources/templates/list"),
        *("prompts/list", "resources/read"),
    )
)
