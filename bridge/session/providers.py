"""An agent that takes its model server by `providers/set` (ACP, unstable) gets ours that way.

Rule: only where it advertises that, the model's URL is known (`config.model.upstream`, or the
intercept URL) and nothing in its environment or arguments has named one: those were replaced then.
The environment stays as it is. Called by bridge.session.launcher, between `initialize` and the
session's opening.
"""

from typing import Any, NamedTuple

from bridge.agent.supervisor import Agent
from bridge.errors import unsupported
from bridge.log import log
from bridge.session.faults import failures
from bridge.session.proxies import Proxies
from bridge.wire import codec
from protocol_schemas.host import Config

Json = dict[str, Any]
_SPOKEN = ("openai", "anthropic")
"""The APIs that an upstream URL by itself is enough for, the likelier first."""


class Choice(NamedTuple):
    """The provider to set, and the API it shall speak."""

    provider: str
    api: str


async def tell(agent: Agent, name: str, config: Config, proxies: Proxies) -> None:
    """Sets the agent's provider to the model proxy. Raises BridgeError where the agent refuses, or
    has no provider that speaks what the host asked for.
    """
    if agent.client.advertised.get("providers") is None:
        return
    known = proxies.untold(name, config)
    if known is None:
        return
    upstream, options = known
    with failures(agent, "providers/list"):
        listed = await agent.client.connection.request("providers/list", {})
    found = _providers(listed)
    choice = choose(found, options.api_type)
    if choice is None:
        apis = sorted({api for provider in found for api in provider["supported"]})
        words = f"the agent's providers speak {apis}, not {options.api_type or list(_SPOKEN)}"
        if options.upstream is None and options.api_type is None:
            log.warning("session %r: the agent keeps its model server: %s", name, words)
            return
        raise unsupported(f"config.model: {words}; set config.model.api_type to one of these")
    url = await proxies.place_model(name, config, upstream)
    params: Json = {
        "providerId": choice.provider,
        "apiType": choice.api,
        "baseUrl": base_url(url, choice.api),
    }
    if options.headers:
        params["headers"] = options.headers
    with failures(agent, "providers/set"):
        await agent.client.connection.request("providers/set", params)


def _providers(listed: Any) -> list[Json]:
    """What `providers/list` says, as far as it can be read: ids and lists of APIs."""
    found: list[Json] = []
    items: list[Any] = (codec.mapping(listed) or {}).get("providers") or []
    for item in items:
        provider = codec.mapping(item) or {}
        supported: Any = provider.get("supported")
        if isinstance(provider.get("providerId"), str) and isinstance(supported, list):
            found.append({**provider, "supported": [str(api) for api in supported]})  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return found


def choose(providers: list[Json], wanted: str | None) -> Choice | None:
    """The provider that speaks the wanted API (None: one that a plain URL is enough for): of
    several the one that speaks it already, then one that is required, then the first.
    """

    def rank(provider: Json, api: str) -> tuple[bool, bool, int]:
        current = codec.mapping(provider.get("current")) or {}
        apis = (wanted,) if wanted else _SPOKEN
        return current.get("apiType") != api, not provider.get("required"), apis.index(api)

    able = [
        (rank(provider, api), Choice(provider["providerId"], api))
        for provider in providers
        for api in provider["supported"]
        if api == wanted or (wanted is None and api in _SPOKEN)
    ]
    return min(able, key=lambda item: item[0])[1] if able else None


def base_url(url: str, api: str) -> str:
    """The URL as clients of that API want it: Anthropic's add `/v1` by themselves."""
    return url.rstrip("/").removesuffix("/v1") if api == "anthropic" else url
