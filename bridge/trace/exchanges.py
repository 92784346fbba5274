"""The model proxy's exchanges as trace events. Made by `bridge.app` and by the model command."""

from typing import Any, Protocol

from bridge.trace.recorder import Recorder


class ExchangeTap(Protocol):
    """The shape of bridge.model.record.Tap."""

    def __call__(
        self,
        kind: str,
        session: str,
        exchange: int,
        direction: str | None,
        data: dict[str, Any],
        payload: bytes | bytearray | memoryview,
    ) -> None: ...


def exchange_tap(recorder: Recorder) -> ExchangeTap:
    """Records what passes: decisions (rewrites, warnings, answers in the upstream's place) as the
    bridge's, the rest as the model's."""

    event = recorder.event

    def tell(
        kind: str,
        session: str,
        exchange: int,
        direction: str | None,
        data: dict[str, Any],
        payload: bytes | bytearray | memoryview,
    ) -> None:
        channel = "bridge" if kind in ("rewrite", "warning", "stand_in") else "model"
        event(channel, direction, session, exchange, kind, data, payload)

    return tell
