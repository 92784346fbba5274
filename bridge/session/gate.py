"""The tool gate of a harness: asked over HTTP before a tool call may run (HOST_PROTOCOL §3).

Rule: whatever goes wrong on the way denies; the words go to the log, the secret never does. Each
question and its verdict is told to the recorder. Made by `bridge.session.session`, asked by
`bridge.session.permissions`.
"""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlsplit

import anyio

from bridge.errors import invalid_request
from bridge.log import log
from bridge.wire import codec
from protocol_schemas.host import ToolInterception

if TYPE_CHECKING:
    from bridge.io.httppool import Pool

TIMEOUT = 120.0
"""Seconds for one verdict."""
_CEILING = 1 << 20
_AS_IS = "/?:@!$&'()*+,;=%~"
"""What stays in a target beside letters and digits; the rest, spaces too, is escaped."""

Verdict = Literal["allow", "deny", "stop"]


class Gate:
    """The gate of one session. Raises BridgeError(invalid_request) for a URL that is not HTTP, and
    for a secret that cannot be a header's."""

    def __init__(
        self,
        interception: ToolInterception,
        note: Callable[[str, dict[str, Any]], None] | None = None,
    ) -> None:
        self.interception = interception
        self._note = note
        try:
            url = urlsplit(interception.url)
            self._port = url.port or {"http": 80, "https": 443}[url.scheme]
        except (KeyError, ValueError):
            url = None
        if url is None or not url.hostname:
            raise invalid_request(
                "config.tool_interception.url is not an http(s) URL with a host and a valid port"
            )
        if not interception.secret.isprintable():
            raise invalid_request(
                "config.tool_interception.secret has characters that no header can carry"
            )
        self._scheme, self._host = url.scheme, url.hostname
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        self._target = quote(target, safe=_AS_IS)
        self._pool: Pool | None = None

    async def verdict(self, tool_call_id: str, arguments: Any) -> Verdict:
        """What the gate says of a tool call; never raises but for cancellation."""
        call = {"tool_call_id": tool_call_id, "arguments": arguments}
        start, said = time.monotonic(), dict[str, Any]()
        action: Verdict = "deny"
        try:
            with anyio.fail_after(TIMEOUT):
                action = await self._ask(codec.encode(call), said)
        except Exception as error:  # noqa: BLE001 - an unreachable gate lets nothing run
            said["error"] = str(error) or type(error).__name__
            log.warning(
                "the tool gate gives no verdict on %s, so it is denied: %s",
                tool_call_id,
                said["error"],
            )
        if self._note is not None:
            seconds = round(time.monotonic() - start, 6)
            self._note("gate", {**call, "verdict": action, **said, "seconds": seconds})
        return action

    async def _ask(self, body: bytes, said: dict[str, Any]) -> Verdict:
        said["status"], data = await self._post(body)
        if not 200 <= said["status"] < 300:
            raise ValueError(f"it answered with status {said['status']}")
        action = (codec.mapping(codec.decode(data)) or {}).get("action")
        if action not in ("allow", "deny", "stop"):
            raise ValueError("its answer has no action allow, deny or stop")
        return action

    async def _post(self, body: bytes) -> tuple[int, bytes]:
        # Only sessions with a gate pay for the HTTP client.
        from bridge.io.forward import forward_for
        from bridge.io.httpclient import Call
        from bridge.io.httppool import Origin, Pool

        if self._pool is None:
            origin = Origin(self._scheme, self._host, self._port)
            self._pool = Pool(origin, forward=forward_for(origin, os.environ))
        headers = [
            (b"Host", self._pool.origin.authority.encode()),
            (b"Authorization", f"Bearer {self.interception.secret}".encode()),
            (b"Content-Type", b"application/json"),
            (b"Content-Length", b"%d" % len(body)),
        ]
        status, answer = 0, bytearray()
        async with Call(self._pool, "POST", self._target.encode(), headers, [body]) as call:
            status = (await call.head()).status
            while (piece := await call.receive()) is not None:
                answer += piece.data
                if len(answer) > _CEILING:
                    raise ValueError("its answer is over 1 MiB")
        return status, bytes(answer)

    def close(self) -> None:
        """Closes the connections that are kept."""
        if self._pool is not None:
            self._pool.close()
