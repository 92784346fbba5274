"""A server with everything the official MCP conformance scenarios ask for.

    python -m tests.peers.conformance.server

It listens on a free loopback port, prints `{"url": ...}` and runs until it is ended.
"""

import json
import socket
import warnings
from typing import Any

import mcp_types as t
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from tests.peers.conformance.tools import (
    BUS,
    PIXEL,
    SCHEMAS,
    STRING,
    call_tool,
    embedded,
    form,
    list_tools,
    need,
    text,
)

RESOURCES: dict[str, Any] = {
    "test://static-text": t.TextResourceContents(
        uri="test://static-text",
        mime_type="text/plain",
        text="This is the content of the static text resource.",
    ),
    "test://static-binary": t.BlobResourceContents(
        uri="test://static-binary", mime_type="image/png", blob=PIXEL
    ),
    "test://watched-resource": t.TextResourceContents(
        uri="test://watched-resource", mime_type="text/plain", text="w"
    ),
}
TEMPLATE = "test://template/"
ARGUMENTS = [t.PromptArgument(name=name, required=True) for name in ("arg1", "arg2")]
PROMPTS = [
    t.Prompt(name="test_simple_prompt", description="d"),
    t.Prompt(name="test_prompt_with_arguments", description="d", arguments=ARGUMENTS),
    t.Prompt(
        name="test_prompt_with_embedded_resource",
        description="d",
        arguments=[t.PromptArgument(name="resourceUri", required=True)],
    ),
    t.Prompt(name="test_prompt_with_image", description="d"),
    t.Prompt(name="test_input_required_result_prompt", description="d"),
]


async def list_resources(context: Any, params: Any) -> t.ListResourcesResult:
    resources = [
        t.Resource(name=uri[7:], uri=uri, description=uri, mime_type=found.mime_type)
        for uri, found in RESOURCES.items()
    ]
    return t.ListResourcesResult(resources=resources, ttl_ms=1000, cache_scope="public")


async def list_templates(context: Any, params: Any) -> t.ListResourceTemplatesResult:
    template = t.ResourceTemplate(
        name="t", uri_template=TEMPLATE + "{id}/data", mime_type="application/json"
    )
    return t.ListResourceTemplatesResult(
        resource_templates=[template], ttl_ms=1000, cache_scope="public"
    )


async def read_resource(context: Any, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
    uri = str(params.uri)
    found = RESOURCES.get(uri)
    if uri.startswith(TEMPLATE):
        ident = uri.removeprefix(TEMPLATE).partition("/")[0]
        data = json.dumps({"id": ident, "data": f"Data for ID: {ident}"})
        found = t.TextResourceContents(uri=uri, mime_type="application/json", text=data)
    if found is None:
        modern = context.protocol_version == "2026-07-28"
        raise MCPError(t.INVALID_PARAMS if modern else -32002, "Resource not found", {"uri": uri})
    return t.ReadResourceResult(contents=[found], ttl_ms=0, cache_scope="private")


async def list_prompts(context: Any, params: Any) -> t.ListPromptsResult:
    return t.ListPromptsResult(prompts=PROMPTS, ttl_ms=1000, cache_scope="public")


async def get_prompt(context: Any, params: t.GetPromptRequestParams) -> Any:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            blocks: list[Any] = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            words = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
            blocks = [text(words)]
        case "test_prompt_with_embedded_resource":
            found = embedded(given["resourceUri"], "Embedded resource content for testing.")
            blocks = [found, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            image = t.ImageContent(data=PIXEL, mime_type="image/png")
            blocks = [image, text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            if not params.input_responses:
                return need({"user_context": form("ctx?", context=STRING)})
            blocks = [text("ctx")]
        case _:
            raise MCPError(t.INVALID_PARAMS, "Unknown prompt")
    messages = [t.PromptMessage(role="user", content=block) for block in blocks]
    return t.GetPromptResult(messages=messages)


async def complete(context: Any, params: Any) -> t.CompleteResult:
    found = t.Completion(values=["paris", "park"], total=2, has_more=False)
    return t.CompleteResult(completion=found)


async def nothing(context: Any, params: Any) -> t.EmptyResult:
    return t.EmptyResult()


def main() -> None:
    warnings.simplefilter("ignore")
    server = Server(
        "conforming",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=nothing,
        on_subscriptions_listen=ListenHandler(BUS),
        get_tool_input_schema=SCHEMAS.get,
    )
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    print(json.dumps({"url": f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"}), flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="critical")
    uvicorn.Server(config).run(sockets=[sock])


if __name__ == "__main__":
    main()
