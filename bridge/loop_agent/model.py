"""The model: chat completions over HTTP, streamed.

Owns: the one HTTP client of the process, made at the first prompt (httpx2 costs 85 ms to import,
which the answer to `initialize` need not wait for). Rules: a request is sent once, never again;
whatever goes wrong is a RequestFailed whose `data.details` has the status and the provider's words;
a cancelled request drops its connection. Called by `bridge.loop_agent.turn`.
"""

import math
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from bridge.errors import RequestFailed
from bridge.loop_agent.completion import BadAnswer, Completion, Kind, error_words
from bridge.loop_agent.failures import failed
from bridge.wire import codec, sse
from protocol_schemas.chat import Chunk

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 600.0
"""Seconds without a byte; models think for minutes before the first."""
_WORDS = 4000
_LINGER = 0.5

Show = Callable[[Kind, str], Awaitable[None]]
"""Takes each piece of text or thought as it comes; holds the stream back while it waits."""


@dataclass(frozen=True)
class Settings:
    """Where the model is: `OPENAI_BASE_URL`, `OPENAI_API_KEY` (optional), `OPENAI_MODEL`."""

    base_url: str
    api_key: str
    model: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        return cls(
            environment.get("OPENAI_BASE_URL", ""),
            environment.get("OPENAI_API_KEY", ""),
            environment.get("OPENAI_MODEL", ""),
        )

    def check(self) -> None:
        """Raises RequestFailed that names what is not set."""
        missing = [
            name
            for name, value in (("OPENAI_BASE_URL", self.base_url), ("OPENAI_MODEL", self.model))
            if not value
        ]
        if missing:
            raise failed(
                "the model is not configured", f"set {' and '.join(missing)} in the environment"
            )
        if urlsplit(self.base_url).scheme not in ("http", "https"):
            raise failed(
                "the model is not configured", "OPENAI_BASE_URL must begin with http(s)://"
            )


class Model:
    """One model endpoint. `close` ends its connections."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: httpx2.AsyncClient | None = None

    async def complete(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], show: Show
    ) -> Completion:
        """One request; text and thoughts go to `show` as they come. Raises RequestFailed."""
        self._settings.check()
        client = self._connected()
        import httpx2

        body: dict[str, Any] = {
            "model": self._settings.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if tools:
            body["tools"] = tools
        url = self._settings.base_url.rstrip("/") + "/chat/completions"
        completion = Completion()
        try:
            async with client.stream("POST", url, content=codec.encode(body)) as response:
                if response.status_code != 200:
                    raise _refused(response, await _start_of(response))
                await _read(response, completion, show)
        except (httpx2.TransportError, httpx2.DecodingError, httpx2.InvalidURL) as error:
            if not completion.complete:
                raise self._failed(f"{type(error).__name__}: {error or 'no details'}") from None
        except (BadAnswer, codec.JSONError, sse.SSEError) as error:
            raise self._failed(str(error)) from None
        return completion

    def _connected(self) -> "httpx2.AsyncClient":
        if self._client is None:
            import httpx2

            parts = urlsplit(self._settings.base_url)
            headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
            if self._settings.api_key:
                headers["Authorization"] = f"Bearer {self._settings.api_key}"
            self._client = httpx2.AsyncClient(
                headers=headers,
                timeout=httpx2.Timeout(READ_TIMEOUT, connect=CONNECT_TIMEOUT),
                # Loading the certificates takes 50 ms, which a plain http:// URL has no use for.
                verify=parts.scheme == "https",
                trust_env=parts.hostname not in ("localhost", "127.0.0.1", "::1"),
            )
        return self._client

    def _failed(self, words: str) -> RequestFailed:
        parts = urlsplit(self._settings.base_url)
        return failed("the model request failed", f"{parts.hostname}:{parts.port or ''}: {words}")

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None


async def _read(response: "httpx2.Response", completion: Completion, show: Show) -> None:
    """Reads the answer into `completion`: a stream, or one JSON text if it is no stream."""
    kind = response.headers.get("content-type", "")
    if not kind.lower().startswith("text/event-stream"):
        await _read_whole(await response.aread(), completion, show)
        return
    parser = sse.Parser()
    with anyio.CancelScope() as scope:
        async for data in response.aiter_bytes():
            events = [] if completion.complete else parser.feed(data)
            await _take(events, completion, show)
            if completion.complete and scope.deadline == math.inf:
                # Read to the end, so that the connection can serve the next request.
                scope.deadline = anyio.current_time() + _LINGER
    if not completion.complete:
        completion.finish(announced=False)


async def _read_whole(body: bytes, completion: Completion, show: Show) -> None:
    """An answer that does not say it is a stream: JSON, or (some servers) a stream all the same."""
    start = body.lstrip()
    if start.startswith((b"data:", b"event:", b"id:", b":")):
        await _take(sse.Parser().feed(body), completion, show)
        if not completion.complete:
            completion.finish(announced=False)
        return
    if not start.startswith(b"{"):
        words = body[:200].decode(errors="replace").strip() or "nothing"
        raise BadAnswer(
            f"the answer is neither an event stream nor a JSON object, but: {words}; "
            "is OPENAI_BASE_URL that of a chat completions server?"
        )
    for part, text in completion.add(codec.decode_as(body, Chunk)):
        await show(part, text)
    completion.finish(announced=True)


async def _take(events: list[sse.Event], completion: Completion, show: Show) -> None:
    """Adds a stream's events to `completion`, which is complete at `[DONE]`. Raises BadAnswer."""
    for event in events:
        if event.data.strip() == b"[DONE]":
            completion.finish(announced=True)
            return
        if not event.data.lstrip().startswith(b"{"):
            continue  # a keep-alive of some servers
        if event.name == "error":
            raise BadAnswer(error_words(_error_in(event.data)))
        for part, text in completion.add(codec.decode_as(event.data, Chunk)):
            await show(part, text)


def _error_in(data: bytes) -> Any:
    """What an answer says of its failure: its `error`, or all of it."""
    fields = codec.mapping(codec.decode(data)) or {}
    return fields.get("error") or fields


async def _start_of(response: "httpx2.Response") -> bytes:
    """The beginning of an error's body, which may be cut off or never end."""
    data = b""
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > _WORDS:
            break
    return data[:_WORDS]


def _refused(response: "httpx2.Response", body: bytes) -> RequestFailed:
    """The error for a status other than 200."""
    text = body.decode(errors="replace").strip()
    try:
        fields = codec.mapping(codec.decode(body))
    except codec.JSONError:
        fields = None
    if fields is not None:
        text = error_words(fields.get("error", fields))
    status = f"{response.status_code} {response.reason_phrase}".strip()
    return failed("the model request failed", f"HTTP {status}: {text or '(no body)'}")
