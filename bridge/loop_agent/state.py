"""What a session is: the sum of the lines of its file.

Owns: the history as the model gets it and as a client is shown it. Rule: the live session and the
one read back from disk go through the same `apply`, so they cannot differ.
Used by `bridge.loop_agent.sessions` and `bridge.loop_agent.turn`.
"""

from collections.abc import Iterable
from typing import Any

from protocol_schemas.session_file import AnyLine, Head, Message, Mode, Rule, Spent, Title

INTERRUPTED = "The call was interrupted; whether it had an effect is not known."


class State:
    """A session's state. `rules`: the "always" answers, by tool name."""

    def __init__(self, head: Head, lines: Iterable[AnyLine] = (), *, mode: str = "ask") -> None:
        self.head = head
        self.title: str | None = None
        self.mode = mode
        self.rules: dict[str, bool] = {}
        self.messages: list[dict[str, Any]] = []
        self.updates: list[dict[str, Any]] = []
        self.spent = Spent()
        self.tool_call_ids: set[str] = set()
        for line in lines:
            self.apply(line)

    def apply(self, line: AnyLine) -> None:
        """Adds one line's meaning."""
        match line:
            case Message():
                self.messages.append(line.message)
                self.updates.extend(line.updates)
                for update in line.updates:
                    if "toolCallId" in update:
                        self.tool_call_ids.add(update["toolCallId"])
            case Title():
                self.title = line.title
            case Mode():
                self.mode = line.mode
            case Rule():
                self.rules[line.tool] = line.allow
            case Spent():
                self.spent.input += line.input
                self.spent.output += line.output
                self.spent.thought += line.thought
                self.spent.cached += line.cached
            case Head():
                self.head = line

    @property
    def request_messages(self) -> list[dict[str, Any]]:
        """The messages of the next model request."""
        if not self.head.system:
            return self.messages
        return [{"role": "system", "content": self.head.system}, *self.messages]

    def unanswered(self) -> list[str]:
        """Ids of the tool calls at the history's end that have no result yet.

        Providers refuse a history with such calls, so whoever ends a turn early answers them.
        """
        results: set[str] = set()
        for message in reversed(self.messages):
            if message["role"] == "tool":
                results.add(message["tool_call_id"])
                continue
            calls: list[dict[str, Any]] = message.get("tool_calls") or []
            return [call["id"] for call in calls if call["id"] not in results]
        return []

    def usage(self) -> dict[str, int] | None:
        """ACP's `usage`: the session's tokens so far; None if no provider told any."""
        spent = self.spent
        if not (spent.input or spent.output):
            return None
        usage = {
            "totalTokens": spent.input + spent.output,
            "inputTokens": spent.input,
            "outputTokens": spent.output,
        }
        if spent.thought:
            usage["thoughtTokens"] = spent.thought
        if spent.cached:
            usage["cachedReadTokens"] = spent.cached
        return usage


def tool_result(call_id: str, content: Any) -> dict[str, Any]:
    """The chat message that answers a tool call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}
