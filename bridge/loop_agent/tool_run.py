"""One tool call: read, permitted, run, shown to the client and answered to the model.

Rules: the model always gets a result it can read; the client sees `pending`, then `in_progress`,
then `completed` or `failed`, also when the turn is cancelled under it; a replay shows the last.
Called by `bridge.loop_agent.turn`.
"""

from typing import Any

from bridge.errors import BridgeError
from bridge.log import log
from bridge.loop_agent import permission
from bridge.loop_agent.completion import ToolCall
from bridge.loop_agent.front import Front, Json
from bridge.loop_agent.session import Session
from bridge.loop_agent.state import INTERRUPTED, tool_result
from bridge.loop_agent.toolbox import Plan, Result, ToolError, read_arguments, text_block
from protocol_schemas.session_file import Message

REJECTED = "The user did not allow this call. Nothing was run."


class TurnCancelled(Exception):
    """The client answered a permission request with `cancelled`: the turn is over."""


class ToolRun:
    """A call of the model on its way. `run` raises TurnCancelled, and RequestFailed of the disk."""

    def __init__(self, session: Session, front: Front, call: ToolCall) -> None:
        self._session = session
        self._front = front
        self._call = call
        self._shown: Json = {"toolCallId": self._fresh_id(call.id)}

    def _fresh_id(self, ident: str) -> str:
        """The model's id for the call; some models begin anew in each answer."""
        used, fresh, count = self._session.state.tool_call_ids, ident, 1
        while fresh in used:
            count += 1
            fresh = f"{ident}-{count}"
        used.add(fresh)
        return fresh

    async def run(self) -> None:
        try:
            result = await self._result()
        except BaseException:
            if "status" in self._shown:
                self._end(Result(INTERRUPTED, [text_block("Cancelled.")], failed=True))
            raise
        self._end(result)

    async def _result(self) -> Result:
        call = self._call
        arguments: Any = call.arguments
        try:
            arguments = read_arguments(call.arguments)
            tool = self._session.tools.find(call.name)
            plan = tool.plan(arguments)
        except ToolError as error:
            self._announce(Plan(call.name or "unnamed tool", "other", _never), arguments)
            return _failure(str(error))
        except Exception as error:  # noqa: BLE001 - as below
            self._announce(Plan(call.name, "other", _never), arguments)
            return _broken(call.name, error)
        self._announce(plan, arguments)
        if tool.spec.asks:
            match await permission.verdict(self._session, self._front, call.name, self._shown):
                case "reject":
                    return _failure(REJECTED)
                case "cancelled":
                    raise TurnCancelled
                case "allow":
                    pass
        self._change({"status": "in_progress"})
        try:
            return await plan.run()
        except ToolError as error:
            return _failure(str(error))
        except BridgeError as error:
            return _failure(error.message)
        except Exception as error:  # noqa: BLE001 - a tool's fault is for the model to read
            return _broken(call.name, error)

    def _announce(self, plan: Plan, arguments: Any) -> None:
        self._shown |= {
            "title": plan.title,
            "name": self._call.name,
            "kind": plan.kind,
            "status": "pending",
            "rawInput": arguments,
        }
        if plan.locations:
            self._shown["locations"] = plan.locations
        if plan.preview:
            self._shown["content"] = plan.preview
        self._front.update(self._session.id, {"sessionUpdate": "tool_call", **self._shown})

    def _change(self, fields: Json) -> None:
        self._shown |= fields
        update = {"sessionUpdate": "tool_call_update", "toolCallId": self._shown["toolCallId"]}
        self._front.update(self._session.id, update | fields)

    def _end(self, result: Result) -> None:
        """The call's last state, to the client, and its result, to the history."""
        fields: Json = {
            "status": "failed" if result.failed else "completed",
            "content": result.shown,
        }
        if result.raw is not None:
            fields["rawOutput"] = result.raw
        self._change(fields)
        replayed = {"sessionUpdate": "tool_call", **self._shown}
        message = tool_result(self._call.id, result.content)
        self._session.record(Message(message, [replayed]))


def _failure(words: str) -> Result:
    return Result(words, [text_block(words)], failed=True)


def _broken(tool: str, error: Exception) -> Result:
    """For an error that the tool did not foresee; called while it is handled."""
    log.exception("tool %s failed", tool)
    return _failure(f"The tool failed: {type(error).__name__}: {error}")


async def _never() -> Result:
    raise AssertionError("a call that cannot be planned is not run")
