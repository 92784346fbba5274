"""Where credentials stand in the head of an HTTP message, by the names of fields and parameters.

Rule: a name says what is secret, a value never does; whatever is found is found in each spelling
in which it was sent or meant. Pure; used by `bridge.model.faults` and `bridge.trace.secrets`.
"""

import base64
import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote_plus

_SECRET_NAME = re.compile(
    r"(^|[_-])(API_?KEYS?|(ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION|LICENSE)[_-]?KEY|KEY"
    r"|TOK|TOKEN|SECRETS?|PASS(WORD|WD|PHRASE)?|PWD|CREDENTIALS?|AUTH|AUTHORIZATION|BEARER|COOKIE"
    r"|PAT|DSN)$|PASSWORD$|APIKEY$|TOKEN$|SECRET$",
    re.IGNORECASE,
)
_NO_CREDENTIALS = ("idempotency-", "sec-websocket-")
"""What fields begin with that have the names of keys, and are none."""
_SCHEMES = frozenset({
    "apikey", "basic", "bearer", "digest", "dpop", "key", "negotiate", "ntlm", "token",
})  # fmt: skip
_COOKIES = ("cookie", "set-cookie")
_PROTOCOL_KEY = re.compile(r"\bapi-key\.([^\s,]+)")


def is_secret_name(name: str) -> bool:
    """Whether an environment variable, a field or a query parameter of that name is secret."""
    return _SECRET_NAME.search(name) is not None


def of_field(name: str, value: str) -> Iterator[str]:
    """The credentials in a field (RFC 9110 §5), if its name says that it holds some."""
    if _is_secret_field(name):
        yield from of_value(value)
        if name.lower() in _COOKIES:
            yield from of_cookies(value)
    elif name.lower() == "sec-websocket-protocol":
        # Browsers cannot set headers: OpenAI's realtime API takes the key as a protocol.
        yield from _PROTOCOL_KEY.findall(value)


@lru_cache(1024)
def _is_secret_field(name: str) -> bool:
    """By a field's name; the same few come with every exchange."""
    return not name.lower().startswith(_NO_CREDENTIALS) and is_secret_name(name)


def of_value(value: str) -> Iterator[str]:
    """A value, and what is secret in it by itself: what follows its scheme (RFC 9110 §11.4), and of
    Basic the pair and the password."""
    value = value.strip()
    if not value:
        return
    yield value
    scheme, _, rest = value.partition(" ")
    if rest and scheme.lower() in _SCHEMES:
        yield rest.strip()
        if scheme.lower() == "basic":
            yield from _of_basic(rest.strip())


def _of_basic(encoded: str) -> Iterator[str]:
    try:
        pair = base64.b64decode(encoded + "==").decode()
    except ValueError:
        return
    yield from filter(None, (pair, pair.partition(":")[2]))


def of_cookies(value: str) -> Iterator[str]:
    """Each cookie's value, and those of its attributes."""
    for part in value.split(";"):
        if text := part.partition("=")[2].strip():
            yield text


def of_query(query: str) -> Iterator[tuple[str, str]]:
    """Names and values of the parameters that are secret, each value as sent and as meant."""
    for parameter in query.split("&"):
        name, _, value = parameter.partition("=")
        name = unquote_plus(name)
        if value and (is_secret_name(name) or name.lower() == "sig"):
            for spelling in dict.fromkeys((value, unquote_plus(value))):
                yield name, spelling
