"""A turn of an agent that speaks ACP version 2, where messages have ids and can be changed.

Owns: the texts of the turn's messages. Rule: the reply is the text of the message that was begun
last, of those that have any; pieces of several messages may come in any order, and a message may be
replaced or cleared as a whole. Made by `bridge.session.session`; sans-IO.
"""

from bridge.agent.updates import Incoming
from bridge.agent.v2 import patches
from bridge.session.turn import Turn
from bridge.wire import codec
from protocol_schemas.acp import TextBlock


class MessageTurn(Turn):
    """A `Turn` whose reply is put together by messages."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._texts: dict[str | None, list[str]] = {}

    def update(self, incoming: Incoming) -> None:
        super().update(incoming)
        update = incoming.params.update
        if update.kind == "agent_message" and update.message_id is not None:
            self._replace(update.message_id, incoming)

    def _text(self, text: str, message_id: str | None) -> None:
        parts = self._texts.get(message_id)
        if parts is None:
            # The last one begun.
            self._texts[message_id] = self._parts = [text]
            self._visible = not text.isspace()
            return
        parts.append(text)
        if len(parts) == 1:
            self._choose()
        elif parts is self._parts and not self._visible and not text.isspace():
            self._visible = True

    def _choose(self) -> None:
        """The message that the reply is, from which `Turn` takes it."""
        filled = [parts for parts in self._texts.values() if parts]
        self._parts = filled[-1] if filled else []
        self._visible = any(not text.isspace() for text in self._parts)

    def _replace(self, message_id: str, incoming: Incoming) -> None:
        """A whole message: what was left out is unchanged, null and an empty list clear it."""
        try:
            change = patches.members(incoming.raw())
            if "content" not in change:
                return
            blocks = [codec.decode_as(item, TextBlock) for item in patches.items(change["content"])]
        except codec.JSONError:
            return
        texts = [block.text for block in blocks if block.type == "text" and block.text]
        if texts or message_id in self._texts:
            self._texts[message_id] = texts
        self._choose()

    def anew(self) -> None:
        super().anew()
        self._texts.clear()
