"""What hosts call a prompt, as ACP content blocks (HOST_PROTOCOL §2 and §3). Pure.

Rule: everything the host gave goes out, in order and whole, or the prompt is refused by name
before anything is sent. Called by `bridge.session.session` once the agent's capabilities are known.
"""

from collections.abc import Iterable
from typing import Any, cast

from bridge.errors import invalid_request, unsupported
from bridge.wire import codec
from protocol_schemas.acp import AgentCapabilities, PromptCapabilities
from protocol_schemas.host import Config, ModelEndpoint

Block = dict[str, Any]

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n"
_NATIVE = ("resource_link", "resource", "audio", "image")
_NEEDS = {"image": "image", "audio": "audio", "resource": "embeddedContext"}


def prompt_blocks(
    config: Config, capabilities: AgentCapabilities, *, first: bool, told: str | None = None
) -> list[Block]:
    """The prompt of a turn, of `user_contents` without the system prompt. `first`: no turn has run
    in this session, and it was not restored; `told`: the system prompt the agent has been told.

    Raises BridgeError: invalid_request for content that is not understood or empty, unsupported
    for content the agent cannot take.
    """
    legacy = config.messages is not None
    blocks = _transcript(config, first=first, told=told) if legacy else _contents(config)
    if not blocks:
        lacking = "messages (after the last assistant's)" if legacy else "user_contents"
        raise invalid_request(f"the prompt has no content: config.{lacking} is empty")
    _check(blocks, capabilities.prompt_capabilities or PromptCapabilities())
    return blocks


def system_blocks(system_prompt: str | None) -> list[Block]:
    """What stands before a session's first prompt, except a transcript (which has its own)."""
    return [_text(f"(system)\n{system_prompt}\n\n[user]\n")] if system_prompt else []


def message_blocks(message: str | list[dict[str, Any]]) -> list[Block]:
    """The blocks of one `steer` or `send` message; raises BridgeError(invalid_request)."""
    blocks = list(_parts(message, "message"))
    if not any(block.get("text") or block["type"] != "text" for block in blocks):
        raise invalid_request("the message is empty")
    return blocks


def check_blocks(blocks: list[Block], capabilities: AgentCapabilities) -> None:
    """Raises BridgeError(unsupported) for a block that the agent does not take."""
    _check(blocks, capabilities.prompt_capabilities or PromptCapabilities())


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _contents(config: Config) -> list[Block]:
    blocks: list[Block] = []
    for index, content in enumerate(config.user_contents or []):
        if index:
            blocks.append(_text("\n\n"))
        blocks.extend(_parts(content, f"config.user_contents[{index}]"))
    return blocks


def _transcript(config: Config, *, first: bool, told: str | None) -> list[Block]:
    messages = [
        (f"config.messages[{index}].content", message)
        for index, message in enumerate(config.messages or [])
    ]
    if not first:
        after = [
            i for i, (_, message) in enumerate(messages, 1) if message.get("role") == "assistant"
        ]
        messages = messages[after[-1] if after else 0 :]
    elif config.system_prompt and config.system_prompt != told:
        system = {"role": "system", "content": config.system_prompt}
        messages.insert(0, ("config.system_prompt", system))
    bare = len(messages) == 1 and messages[0][1].get("role") == "user"
    blocks: list[Block] = []
    for where, message in messages:
        if not bare:
            gap = "\n\n" if blocks else ""
            blocks.append(_text(f"{gap}[{message.get('role', 'message')}]\n"))
        blocks.extend(_parts(message.get("content"), where))
        rest = {k: v for k, v in message.items() if k not in ("role", "content") and v}
        if rest:
            blocks.append(_text("\n" + codec.encode(rest).decode()))
    return blocks


def _parts(content: Any, where: str) -> Iterable[Block]:
    if content is None or isinstance(content, str):
        yield _text(content or "")
        return
    if not isinstance(content, list):
        raise invalid_request(f"{where} is neither text nor a list of parts")
    for index, part in enumerate(cast("list[Any]", content)):
        yield _part(part, f"{where}[{index}]")


def _part(part: Any, where: str) -> Block:
    fields = codec.mapping(part)
    kind = fields.get("type") if fields is not None else None
    if fields is None or not isinstance(kind, str):
        raise invalid_request(f'{where} is not a content part: it needs a "type"')
    if kind == "text":
        if not isinstance(fields.get("text"), str):
            raise invalid_request(f"{where}.text is not a string")
        return fields
    if kind == "image_url":
        return _image(fields, where)
    if kind in _NATIVE:
        return fields
    raise invalid_request(
        f"{where} has the type {kind!r}; text, image_url and ACP's {', '.join(_NATIVE)} are known"
    )


def _image(part: Block, where: str) -> Block:
    """`{"image_url": {"url": "data:image/png;base64,..."}}`, as OpenAI's chat messages have it."""
    url = (codec.mapping(part.get("image_url")) or {}).get("url")
    head, comma, data = url.partition(",") if isinstance(url, str) else ("", "", "")
    media_type, *parameters = head.removeprefix("data:").split(";")
    if (
        not comma
        or not head.startswith("data:image/")
        or not any(parameter.lower() == "base64" for parameter in parameters)
    ):
        raise invalid_request(f"{where}.image_url.url is not a base64 data:image/... URL")
    if not data or not data.isascii() or data.encode().translate(None, _BASE64):
        raise invalid_request(f"{where}.image_url.url holds no base64 after its comma")
    return {"type": "image", "data": data, "mimeType": media_type}


def _check(blocks: list[Block], can: PromptCapabilities) -> None:
    offered = {"image": can.image, "audio": can.audio, "resource": can.embedded_context}
    for block in blocks:
        kind = block["type"]
        if not offered.get(kind, True):
            raise unsupported(
                f"the agent does not take {kind} content: it did not advertise "
                f"promptCapabilities.{_NEEDS[kind]}; nothing was sent"
            )


def mcp_servers(config: Config) -> list[dict[str, Any]]:
    """ACP's `mcpServers`: `mcp_urls` with their `mcp_headers`, then `mcp_servers` as given."""
    urls, headers = config.mcp_urls or {}, config.mcp_headers or {}
    servers: list[dict[str, Any]] = [
        {
            "type": "http",
            "name": name,
            "url": url,
            "headers": [{"name": k, "value": v} for k, v in headers.get(name, {}).items()],
        }
        for name, url in urls.items()
    ]
    return servers + (config.mcp_servers or [])


def require_command(config: Config) -> list[str]:
    """The command line of an agent without a profile; raises BridgeError(invalid_request), also for
    what only a profile has a place for."""
    if not config.command or not config.command[0]:
        raise invalid_request(
            'config.command is empty: give the agent as a list, e.g. ["node", "agent.js"], '
            "or by its profile's name in config.agent"
        )
    for name in ModelEndpoint.__struct_fields__:
        if name in (config.model or {}):
            raise invalid_request(
                f"config.model.{name} goes with config.agent; an agent started by a command "
                "is told its model in config.env"
            )
    return config.command
