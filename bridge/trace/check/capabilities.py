"""Capabilities: nobody asks for what the other side did not offer."""

from bridge.trace.check.context import OPENERS, Context, field, from_client, listed, strings
from bridge.trace.check.finding import Report
from bridge.trace.timeline import Entry

_OF_THE_AGENT: dict[str, tuple[str, ...]] = {
    "session/load": ("loadSession",),
    **{
        f"session/{name}": ("sessionCapabilities", name)
        for name in ("resume", "list", "delete", "close", "fork", "archive", "status")
    },
    "session/unarchive": ("sessionCapabilities", "archive"),
    "session/set_title": ("sessionCapabilities", "title"),
    "logout": ("auth", "logout"),
    "auth/status": ("auth", "status"),
    "providers/list": ("providers",),
    "providers/set": ("providers",),
    "providers/disable": ("providers",),
}
"""Version 1. What a version 2 agent must always be able to do is not asked about."""
_V2_BASELINE = frozenset(
    {"session/list", "session/resume", "session/close", "session/load", "logout"}
)
_OF_THE_CLIENT: dict[str, tuple[str, ...]] = {
    "fs/read_text_file": ("fs", "readTextFile"),
    "fs/write_text_file": ("fs", "writeTextFile"),
    **{
        f"terminal/{name}": ("terminal",)
        for name in ("create", "output", "wait_for_exit", "kill", "release")
    },
}
_FOLDERS = "additionalDirectories"
_BLOCKS = {"image": "image", "audio": "audio", "resource": "embeddedContext"}
_UPDATES = {
    "notice": ("session", "notices"),
    "compaction_update": ("session", "compaction"),
    "compaction_summary_chunk": ("session", "compaction"),
    "plan_update": ("plan",),
    "plan_removed": ("plan",),
    "subagent_update": ("subagents",),
}


class Capabilities:
    """Both sides of one connection."""

    def __init__(self, context: Context, report: Report) -> None:
        self._context = context
        self._say = report.say
        self._told: set[str] = set()

    def see(self, entry: Entry) -> None:
        if self._context.initialized is None or entry.role not in ("request", "notification"):
            return
        if from_client(entry):
            self._client(entry)
        else:
            self._agent(entry)

    def _client(self, entry: Entry) -> None:
        context, method = self._context, entry.method
        path = _OF_THE_AGENT.get(method)
        if context.speaks > 1 and path is not None and path[0] == "sessionCapabilities":
            path = ("session", path[1])
        if context.speaks > 1 and method in _V2_BASELINE:
            path = None
        if path is not None and not context.agent_can(*path):
            self._say("agent-capability", entry, f"the agent did not offer {'.'.join(path)}")
        if method == "_session/steering":
            if field(context.agent, "_meta", "steering", "supported") is not True:
                self._say("steering-capability", entry, "the agent did not offer steering")
        elif method == "session/prompt":
            self._prompt(entry)
        elif method in OPENERS:
            self._servers(entry)
            self._folders(entry)

    def _prompt(self, entry: Entry) -> None:
        root = ("promptCapabilities",) if self._context.speaks == 1 else ("session", "prompt")
        for block in listed(entry.fields.get("prompt")):
            kind = str(block.get("type"))
            if kind in _BLOCKS and not self._context.agent_can(*root, _BLOCKS[kind]):
                words = f"a block of type {kind}; the agent did not offer {_BLOCKS[kind]}"
                self._say("prompt-capability", entry, words)

    def _servers(self, entry: Entry) -> None:
        root = ("mcpCapabilities",) if self._context.speaks == 1 else ("session", "mcp")
        for server in listed(entry.fields.get("mcpServers")):
            kind = server.get("type")
            if kind in ("http", "sse", "acp") and not self._context.agent_can(*root, kind):
                words = f"server {server.get('name')!r} is of type {kind}, which the agent cannot"
                self._say("mcp-capability", entry, words)

    def _folders(self, entry: Entry) -> None:
        root = "sessionCapabilities" if self._context.speaks == 1 else "session"
        if strings(entry.fields.get(_FOLDERS)) and not self._context.agent_can(root, _FOLDERS):
            self._say("agent-capability", entry, f"the agent did not offer {root}.{_FOLDERS}")

    def _agent(self, entry: Entry) -> None:
        context, method = self._context, entry.method
        path = _OF_THE_CLIENT.get(method)
        if path is not None and not context.client_can(*path):
            self._say("client-capability", entry, f"the client did not offer {'.'.join(path)}")
        if method == "elicitation/create":
            mode = str(entry.fields.get("mode", "form"))
            if not context.client_can("elicitation", mode):
                words = f"the client did not offer elicitation.{mode}"
                self._say("client-capability", entry, words)
        needed = _UPDATES.get(entry.update or "")
        if (
            context.speaks == 1
            and needed is not None
            and not context.client_can(*needed)
            and entry.update not in self._told
        ):
            self._told.add(entry.update or "")
            words = f"the client did not ask for {'.'.join(needed)}"
            self._say("update-capability", entry, words)

    def end(self) -> None:
        """Nothing is left over."""
