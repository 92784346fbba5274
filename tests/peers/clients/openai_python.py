"""The OpenAI Python SDK against a scripted model: `openai_python.py BASE_URL`, outcomes as JSON.

Runs in an environment of its own (install.py's model-clients). Each step's outcome is a value, or
the error's class and status.
"""

import base64
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="dummy", max_retries=0)
TOOLS: Any = [
    {
        "type": "function",
        "function": {"name": "echo", "parameters": {"type": "object", "properties": {}}},
    }
]


def chat(*messages: Any, **more: Any) -> Any:
    return client.chat.completions.create(model="scripted", messages=list(messages), **more)


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def whole() -> Any:
    answer = chat(user("SAY hello é"))
    return [answer.choices[0].message.content, answer.choices[0].finish_reason]


def streamed() -> Any:
    stream = chat(user("SLOW 0.5"), stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    return [text.split()[-1], len(chunks) > 3, any(chunk.usage for chunk in chunks)]


def tool_loop() -> Any:
    """Two turns with a tool call between them; the history keeps the null content of the dump."""
    prompt = user('USE_TOOL echo {"message": "x"}')
    message = chat(prompt, tools=TOOLS).choices[0].message
    call = message.tool_calls[0]
    history = [prompt, message.to_dict()]
    history.append({"role": "tool", "tool_call_id": call.id, "content": "echoed"})
    said = chat(*history, tools=TOOLS).choices[0].message.content
    return [message.content, call.function.name, json.loads(call.function.arguments), said]


def null_history() -> Any:
    return (
        chat(user("x"), {"role": "assistant", "content": None}, user("SAY on"))
        .choices[0]
        .message.content
    )


def image() -> Any:
    data = base64.b64encode(os.urandom(7 << 20)).decode()
    parts = [
        {"type": "text", "text": "SAY seen"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
    ]
    history = [{"role": "user", "content": parts}, {"role": "assistant", "content": None}]
    return chat(*history, user("SAY seen")).choices[0].message.content


def failure() -> Any:
    return chat(user(f"FAIL 429 {os.getpid()}"))


def response() -> Any:
    return client.responses.create(model="scripted", input="SAY r").output_text


def response_streamed() -> Any:
    with client.responses.stream(model="scripted", input="SAY rs") as stream:
        kinds = [event.type for event in stream]
        return [stream.get_final_response().output_text, kinds[0], kinds[-1]]


def models() -> Any:
    return [model.id for model in client.models.list()]


def attempt(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except openai.APIStatusError as error:
        return [type(error).__name__, error.status_code, str(error)]


STEPS = [whole, streamed, tool_loop, null_history, image, failure, response, response_streamed]
print(json.dumps({step.__name__: attempt(step) for step in [*STEPS, models]}))
