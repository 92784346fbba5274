"""Which model an agent of a profile is to use: wire, URL, key and name. Pure.

Rules: what the host says wins, then the daemon's environment, then `--intercept`; a vendor's public
URL is only taken where there is a key for it. The URL has the form in which the agent wants it:
OpenAI's wires are given with `/v1` and asked under it, Anthropic's and Gemini's are given without.
Called by `bridge.session.placement`.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from bridge.errors import invalid_request, unsupported
from protocol_schemas.host import ModelEndpoint
from protocol_schemas.profile import Profile, Wire, WireUse

NO_KEY = "none"
"""What an agent gets for a key where there is none: an empty one makes most refuse to start."""


class Variables(NamedTuple):
    """Where the environment has a wire's URL, key and model name; the vendor's public URL."""

    url: str
    key: str
    name: str
    public: str


_OPENAI = Variables(
    "OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "https://api.openai.com/v1"
)
VARIABLES: dict[Wire, Variables] = {
    "chat": _OPENAI,
    "responses": _OPENAI,
    "anthropic": Variables(
        "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_MODEL", "https://api.anthropic.com"
    ),
    "gemini": Variables(
        "GOOGLE_GEMINI_BASE_URL",
        "GEMINI_API_KEY",
        "GEMINI_MODEL",
        "https://generativelanguage.googleapis.com",
    ),
}


class Endpoint(NamedTuple):
    """A model as an agent is told of it."""

    wire: Wire
    url: str
    key: str
    name: str


def endpoint(
    profile: Profile,
    given: ModelEndpoint,
    environment: Mapping[str, str],
    intercept: str | None = None,
) -> Endpoint:
    """The model for an agent; `given`: what the host says of it. Raises BridgeError."""
    wire = given.wire or _wire(profile, environment)
    use = profile.wires.get(wire)
    if use is None:
        raise unsupported(
            f"the agent {profile.name!r} does not speak config.model.wire {wire!r}; "
            f"it speaks {', '.join(profile.wires)}"
        )
    names = VARIABLES[wire]
    key = given.api_key or environment.get(names.key)
    url = given.base_url or environment.get(names.url) or intercept or (names.public if key else "")
    if not url:
        raise invalid_request(
            f"the agent {profile.name!r} needs a model server: give config.model.base_url "
            f"({wire}), or {names.url} in the environment, or --intercept"
        )
    name = given.name or environment.get(names.name)
    if not name:
        raise invalid_request(
            f"the agent {profile.name!r} needs a model's name: give config.model.name, "
            f"or {names.name} in the environment"
        )
    return Endpoint(wire, wanted(url, wire, use), key or NO_KEY, name)


def _wire(profile: Profile, environment: Mapping[str, str]) -> Wire:
    """The first that the environment has a URL for, else a key, else the profile's first."""
    for kind in ("url", "key"):
        for wire in profile.wires:
            if environment.get(getattr(VARIABLES[wire], kind)):
                return wire
    return next(iter(profile.wires))


def wanted(url: str, wire: Wire, use: WireUse) -> str:
    """The base URL with or without `/v1` at its end, as the agent wants it on this wire.

    An OpenAI URL with another path than that is left as it is: that is where its server answers.
    """
    url = url.rstrip("/")
    if not use.v1:
        return url.removesuffix("/v1")
    bare = not urlsplit(url).path
    return f"{url}/v1" if (bare or wire == "anthropic") and not url.endswith("/v1") else url
