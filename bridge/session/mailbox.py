"""Messages a host sent without a turn of their own (`send`, HOST_PROTOCOL §4). Sans-IO.

Owns: what waits for a turn, and the receipts already given. Rules: a message id with the same
content gets its first receipt again, with other content it is an error; after a cancel nothing is
started unasked; closing withdraws what was not delivered. Driven by `bridge.session.session`.
"""

from typing import Any

from bridge.errors import invalid_request
from bridge.wire import codec

Block = dict[str, Any]


class Mailbox:
    """One session's waiting messages, in order of arrival."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, list[Block]]] = []
        self._accepted: dict[str, bytes] = {}
        self._count = 0
        self.held = False
        """After a cancel: the next prompt or send takes along what waits, nothing else does."""

    def __len__(self) -> int:
        return len(self._waiting)

    def accept(self, blocks: list[Block], message_id: str | None, mode: str) -> tuple[str, bool]:
        """Notes a message: its id, and whether it is new. Raises invalid_request for another
        content under a known id."""
        made = message_id is None
        while message_id is None or (made and message_id in self._accepted):
            self._count += 1
            message_id = f"message-{self._count}"
        content = mode.encode() + codec.encode(blocks)
        known = self._accepted.get(message_id)
        if known is None:
            self._accepted[message_id] = content
            return message_id, True
        if known != content:
            raise invalid_request(f"message_id {message_id!r} was used for another message")
        return message_id, False

    def retract(self, message_id: str) -> None:
        """The message was not accepted after all: its id is free again."""
        self._accepted.pop(message_id, None)

    def put(self, message_id: str, blocks: list[Block]) -> None:
        self._waiting.append((message_id, blocks))

    def take(self) -> tuple[list[str], list[Block]]:
        """All that waits: the message ids, and the blocks with a blank line between messages."""
        ids = [message_id for message_id, _ in self._waiting]
        blocks: list[Block] = []
        for _, message in self._waiting:
            if blocks:
                blocks.append({"type": "text", "text": "\n\n"})
            blocks.extend(message)
        self.withdraw()
        return ids, blocks

    def withdraw(self) -> list[str]:
        """Empties the box; the ids of what was not delivered."""
        ids = [message_id for message_id, _ in self._waiting]
        self._waiting.clear()
        self.held = False
        return ids
