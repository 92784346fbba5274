"""The beginning of a connection: initialize, versions, authentication."""

from bridge.trace.check.context import Context, field, from_client, listed, version_of
from bridge.trace.check.finding import Report
from bridge.trace.check.schema import VERSIONS
from bridge.trace.timeline import Entry

_AUTH_REQUIRED = -32000
_LOGIN = ("authenticate", "auth/login")


class Lifecycle:
    """What has to come first, and what was agreed on."""

    def __init__(self, context: Context, report: Report) -> None:
        self._context = context
        self._say = report.say
        self._first = True

    def see(self, entry: Entry) -> None:
        if entry.role == "noise":
            return
        client = from_client(entry)
        if entry.method == "initialize" and entry.role == "request" and client:
            if self._context.initialized is not None:
                line = self._context.initialized.event.line
                self._say("initialize-again", entry, f"was initialized by line {line}")
        elif entry.method == "initialize" and entry.role == "response" and not client:
            self._initialized(entry)
        elif entry.role == "request" and self._context.initialized is None and self._first:
            words = f"{entry.method} before initialize was answered"
            self._say("before-initialize", entry, words)
            self._first = False
        if entry.role == "request" and entry.method in _LOGIN and client:
            self._login(entry)
        elif entry.role == "response" and entry.failed and not client:
            self._refused(entry)

    def _initialized(self, entry: Entry) -> None:
        if entry.failed:
            return
        version, asked = version_of(entry), self._context.asked
        if version is not None:
            if asked is not None and version > asked:
                words = f"asked for version {asked}, answered {version}"
                self._say("version-too-high", entry, words)
            if version not in VERSIONS:
                self._say("version-unknown", entry, f"version {version} is not known here")
        key = "id" if version == 1 else "methodId"
        seen: set[object] = set()
        for method in listed(entry.fields.get("authMethods")):
            if method.get(key) in seen:
                words = f"two authentication methods {method.get(key)!r}"
                self._say("authentication-id-duplicate", entry, words)
            seen.add(method.get(key))
            can = self._context.client_can("auth", "terminal")
            if method.get("type") == "terminal" and not can:
                words = (
                    f"method {method.get(key)!r} needs a terminal, which the client did not offer"
                )
                self._say("authentication-terminal", entry, words)

    def _login(self, entry: Entry) -> None:
        ident = entry.fields.get("methodId")
        methods = listed(field(self._context.agent, "authMethods"))
        if ident not in [method.get("id", method.get("methodId")) for method in methods]:
            self._say("authentication-unknown", entry, f"{ident!r} was not offered")

    def _refused(self, entry: Entry) -> None:
        offered = listed(field(self._context.agent, "authMethods"))
        if entry.fields.get("code") == _AUTH_REQUIRED and not offered:
            self._say("authentication-missing", entry, "demands authentication, offers no method")

    def end(self) -> None:
        """Nothing is left over."""
