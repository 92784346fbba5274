"""The Anthropic Python SDK against a scripted model: `anthropic_python.py BASE_URL`, as JSON."""

import base64
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import anthropic

client = anthropic.Anthropic(base_url=sys.argv[1], api_key="dummy", max_retries=0)
TOOLS: Any = [{"name": "echo", "input_schema": {"type": "object", "properties": {}}}]


def ask(*messages: Any, **more: Any) -> Any:
    made: Any = {"model": "scripted", "max_tokens": 100, "messages": list(messages), **more}
    return client.messages.create(**made)


def user(content: Any) -> Any:
    return {"role": "user", "content": content}


def whole() -> Any:
    answer = ask(user("SAY hello é"))
    return [answer.content[0].text, answer.stop_reason]


def streamed() -> Any:
    with client.messages.stream(
        model="scripted", max_tokens=100, messages=[user("SLOW 0.5")]
    ) as stream:
        pieces = list(stream.text_stream)
        return [
            "".join(pieces).split()[-1],
            len(pieces) > 1,
            stream.get_final_message().stop_reason,
        ]


def tool_loop() -> Any:
    prompt = user('USE_TOOL echo {"message": "x"}')
    answer = ask(prompt, tools=TOOLS)
    call = next(block for block in answer.content if block.type == "tool_use")
    result = user([{"type": "tool_result", "tool_use_id": call.id, "content": "echoed"}])
    replayed = {"role": "assistant", "content": [block.to_dict() for block in answer.content]}
    return [call.name, call.input, ask(prompt, replayed, result, tools=TOOLS).content[0].text]


def image() -> Any:
    data = base64.b64encode(os.urandom(7 << 20)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return (
        ask(user([{"type": "image", "source": source}, {"type": "text", "text": "SAY seen"}]))
        .content[0]
        .text
    )


def failure() -> Any:
    return ask(user(f"FAIL 529 {os.getpid()}"))


def count() -> Any:
    return client.messages.count_tokens(model="scripted", messages=[user("x")]).input_tokens


def attempt(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except anthropic.APIStatusError as error:
        return [type(error).__name__, error.status_code, str(error)]


STEPS = [whole, streamed, tool_loop, image, failure, count]
print(json.dumps({step.__name__: attempt(step) for step in STEPS}))
