"""One exchange between an agent and its model server: request, response, and all that goes wrong.

Rules: the same bytes, in the same order, at the same moment, but for what a rule changes in a
request. A request is sent once. An agent that leaves takes its upstream connection with it (the
handler is cancelled). An upstream that breaks off breaks the agent's connection too; only what has
not begun is answered with an error of our own. Called by bridge.model.front, once a request.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

from bridge.io.exchange import Exchange, TooLarge
from bridge.io.httpclient import Call, Parts
from bridge.io.httppool import Pool, UpstreamError, UpstreamTimeout
from bridge.model import answers, dialects, facts, models_list
from bridge.model.body import CEILING, Mended, Mender, Unreadable
from bridge.model.facts import Facts
from bridge.model.ledger import Account
from bridge.model.record import Observers, Record, Silent
from bridge.model.response import filterable, pass_on, pass_on_filtered, tunnel
from bridge.model.upstream import Upstream, join, reframed, request_headers
from bridge.rules import limits
from bridge.wire import http_body
from bridge.wire.encodings import TooLong
from bridge.wire.http_body import BadBody
from bridge.wire.http_head import Headers, Response, members
from bridge.wire.json_scan import Text
from protocol_schemas.model import ModelLimits, ModelOptions
from protocol_schemas.profile import SideCall

_PEEK = 1 << 20


class Route:
    """Where requests under one unguessable segment go, and for whom."""

    def __init__(
        self, upstream: Upstream, session: str, options: ModelOptions, pool: Pool, account: Account,
        side_calls: Sequence[SideCall] = (),
    ) -> None:  # fmt: skip
        self.upstream, self.session, self.options = upstream, session, options
        self.pool, self.account, self.side_calls = pool, account, side_calls
        self.terms = (upstream, session, options, tuple(side_calls))
        """What makes two routes the same."""
        self.mender = Mender(options, side_calls)
        self.limited = options.limits != ModelLimits()


class Aim(NamedTuple):
    """Where one request target leads: its route, the upstream's target and path, and its kind."""

    route: Route
    target: bytes
    path: str
    kind: dialects.Kind


def aim(route: Route, method: str, rest: bytes) -> Aim:
    """The aim of a request; `rest` is its target behind the route's segment."""
    target = join(route.upstream, rest)
    path = target.partition(b"?")[0].decode("latin-1")
    return Aim(route, target, path, dialects.kind(method, path))


class Refused(Exception):
    """A request that the proxy answers itself."""

    def __init__(self, code: answers.Code, message: str, limit: str | None = None) -> None:
        super().__init__(message)
        self.code: answers.Code = code
        self.limit = limit


class Relay:
    """One exchange on its way. `run` does it, and returns when the agent has all of it."""

    def __init__(self, aim: Aim, exchange: Exchange, observers: Observers, number: int) -> None:
        route, self._target, self._path, self._kind = aim
        self._route = route
        self._exchange = exchange
        self._told = route.limited or observers.watching
        self._record: Silent = _SILENT
        if self._told:
            record = self._record = Record(
                observers,
                route.session,
                number,
                self._kind,
                exchange.method,
                self._path,
                str(route.upstream.origin),
            )
            route.account.generations.began(record.event)
        self._turn = False
        self._counted = 0
        self._unread: _Outgoing | None = None
        if route.limited:
            self._record.on_last = self._count

    async def run(self) -> None:
        """Forwards the request and relays the response. Raises BadBody for a request whose framing
        is broken, and BrokenResourceError where the agent has left.
        """
        record, exchange = self._record, self._exchange
        record.request(exchange.target, exchange.headers)
        outcome, error = "gone", None
        try:
            if self._route.mender.reads(self._kind):
                await self._forward_read()
            else:
                await self._forward_unread()
            outcome = "complete"
        except Refused as refused:
            outcome, error = "refused", str(refused)
            await self._answer(refused.code, str(refused), refused.limit)
        except BadBody as broken:
            outcome, error = "refused", str(broken)
            raise
        except (TooLarge, TooLong) as refused:
            outcome, error = "refused", str(refused)
            await self._answer("too_large", str(refused))
        except UpstreamError as failed:
            outcome, error = "cut" if exchange.status is not None else "failed", str(failed)
            late = isinstance(failed, UpstreamTimeout)
            await self._answer("timeout" if late else "model_upstream", str(failed))
        finally:
            self._settle()
            if (event := record.end(outcome, error)) is not None:
                self._route.account.generations.ended(event)

    def _settle(self) -> None:
        """Counts what the exchange cost."""
        self._look_back()
        if self._turn and (self._exchange.status or 500) >= 300:
            self._route.account.give_back()
        if self._told:
            self._count()

    def _count(self) -> None:
        """Counts the tokens of what has come. Called once at the end, and before that where a
        stream says that it is over: the agent may make its next call at once.
        """
        answer = self._record.read()
        self._counted = self._route.account.add(
            self._route.options.limits,
            answer.usage,
            cut_short=answer.finish_reason in dialects.CAPPED,
            counted=self._counted,
        )

    async def _answer(self, code: answers.Code, message: str, limit: str | None = None) -> None:
        """Answers the agent with an error, unless an answer is under way: that is cut then."""
        exchange = self._exchange
        if exchange.status is not None:
            return
        status = answers.STATUSES[code]
        self._record.answered(status, limit)
        body = answers.error(code, message, anthropic=answers.is_anthropic(self._target))
        await exchange.respond(status, [answers.JSON_TYPE], body)

    def _headers(self, *, upgrade: bool = False) -> Headers:
        exchange, upstream = self._exchange, self._route.upstream
        return request_headers(upstream, exchange.headers, exchange.fields, upgrade=upgrade)

    async def _forward_unread(self) -> None:
        """Forwards a request as it comes."""
        exchange, kind = self._exchange, self._kind
        upgrade = exchange.version == 1 and b"websocket" in members(exchange.header(b"upgrade"))
        headers = self._headers(upgrade=upgrade)
        if kind.purpose == "turn":
            self._admit("turn")
        self._record.forward(self._target, headers, [])
        if exchange.framing != "none":
            self._unread = _Outgoing(exchange, self._record, self._look_back)
        await self._call(headers, stream=self._unread, upgrade=upgrade)

    async def _forward_read(self) -> None:
        """Forwards a request that a rule or a limit has to see."""
        exchange, mender, dialect = self._exchange, self._route.mender, self._kind.dialect
        headers = self._headers()
        body = text = await exchange.collect(CEILING)
        self._record.body(body)
        encoding = exchange.header(b"content-encoding")
        if encoding is not None:
            text = await self._decoded(body, encoding)
        mended = _UNREAD if text is None else mender.mend(text, dialect, tell=self._told)
        self._admit(self._purpose(mended.facts) if self._told else "turn")
        spliced, offered = mended.spliced, mended.offered
        if offered is not None:
            # The answer will have to be read.
            headers = [pair for pair in headers if pair[0].lower() != b"accept-encoding"]
        if spliced is None:
            self._record.forward(self._target, headers, [])
            await self._call(headers, self._framed([body], len(body)), offered=offered)
        else:
            headers = reframed(headers, spliced.size, plain=text is not body)
            self._record.forward(self._target, headers, spliced.changes)
            parts = self._framed(spliced.parts, spliced.size)
            await self._call(headers, parts, offered=offered)

    async def _decoded(self, body: Text, encoding: bytes) -> Text | None:
        try:
            text = await self._route.mender.decoded(body, encoding)
        except Unreadable as error:
            raise Refused("unsupported_encoding", str(error)) from None
        if text is None:
            words = encoding.decode("latin-1")
            self._record.warn(f"passed on unread: its content encoding {words!r} cannot be read")
        return text

    def _purpose(self, found: Facts) -> dialects.Purpose:
        """What a generation is for, by what it and those before it say."""
        account = self._route.account
        purpose = facts.purpose(found, account.offered_tools)
        account.offered_tools = account.offered_tools or bool(found.tools)
        account.named(found.model)
        self._record.facts(found, purpose)
        return purpose

    def _admit(self, purpose: dialects.Purpose) -> None:
        """Lets a generation through, or refuses it."""
        if not self._route.limited:
            return
        self._turn = purpose == "turn"
        name = self._route.account.admit(self._route.options.limits, turn=self._turn)
        if name is not None:
            self._turn = False
            raise Refused("limit", limits.words(self._route.options.limits, name), name)

    def _framed(self, parts: Parts, size: int) -> Parts:
        """The parts of a body that was read, in the framing that the request has."""
        if self._exchange.framing != "chunked":
            return parts
        end = http_body.last_chunk(self._exchange.trailers)
        return [b"%x\r\n" % size, *parts, b"\r\n", end] if size else [end]

    def _look_back(self) -> None:
        """What a request that was not read says of itself, told from what passed: when it has gone
        out, or when the exchange has ended before that.
        """
        body, self._unread = self._unread, None
        if body is None or not self._told or self._kind.purpose != "turn":
            return
        if body.seen and self._exchange.header(b"content-encoding") is None:
            found = facts.read(self._kind.dialect, b"".join(body.seen), self._route.side_calls)
            if self._purpose(found) != "turn" and self._turn:
                self._route.account.give_back()
                self._turn = False

    async def _call(
        self,
        headers: Headers,
        body: Parts = (),
        *,
        stream: "_Outgoing | None" = None,
        upgrade: bool = False,
        offered: frozenset[str] | None = None,
    ) -> None:
        """Sends the request and passes on what comes; `offered`: without calls to other tools."""
        exchange, record = self._exchange, self._record
        async with Call(
            self._route.pool,
            exchange.method,
            self._target,
            headers,
            body,
            stream=stream,
            interim=lambda response: exchange.inform(response.status, response.headers),
            idle_timeout=self._route.options.idle_timeout,
        ) as call:
            head = await call.head()
            record.head(head)
            if head.status == 101:
                if not upgrade:
                    raise UpstreamError("the upstream switched protocols unasked")
                await tunnel(exchange, call, head)
            elif self._kind.purpose == "models" and self._lists(head):
                await self._list_models()
            elif offered is not None and filterable(head):
                await pass_on_filtered(exchange, call, head, record, offered)
            else:
                if offered is not None and head.status == 200:
                    record.warn("passed on with all its calls: in a content encoding, unasked")
                await pass_on(exchange, call, head, record)

    def _lists(self, head: Response) -> bool:
        """Whether the proxy lists the models itself, since the upstream has no such list."""
        asked = self._exchange.method == "GET" and models_list.asked_for(self._path)
        return asked and head.status in models_list.MISSING and self._route.options.answer_models

    async def _list_models(self) -> None:
        route, exchange = self._route, self._exchange
        self._record.stood_in()
        names = dict.fromkeys((*route.options.models, *route.account.models))
        body = models_list.listing(names, self._path, exchange.fields)
        await exchange.respond(200, [answers.JSON_TYPE], body)


class _Outgoing:
    """A request's body on its way through, unread; the beginning of it is remembered."""

    def __init__(self, exchange: Exchange, record: Silent, passed: Callable[[], None]) -> None:
        self._exchange = exchange
        self._record = record
        self._passed = passed
        self._chunked = exchange.framing == "chunked"
        self._ended = False
        self.seen: list[bytes] | None = []
        """What has passed; None if that is more than is worth reading."""
        self._size = 0

    def __aiter__(self) -> AsyncIterator[Parts]:
        return self

    async def __anext__(self) -> Parts:
        data = await self._exchange.receive()
        if data is None:
            if self._ended or not self._chunked:
                self._passed()
                raise StopAsyncIteration
            self._ended = True
            return [http_body.last_chunk(self._exchange.trailers)]
        self._record.body(data)
        self._size += len(data)
        if self._size > _PEEK:
            self.seen = None
        elif self.seen is not None:
            self.seen.append(data)
        return [b"%x\r\n" % len(data), data, b"\r\n"] if self._chunked else [data]


_SILENT = Silent()
_UNREAD = Mended(None)
