"""Where an agent is told its model servers: every such URL in its environment and arguments is
replaced by the proxy's.

Rule: only http(s) URLs that are there; a vendor's public default is not made up. Well-known
variables hold one, or JSON with some; the intercept URL (`--intercept`) is replaced wherever it
stands, inside JSON too. Nothing else in a value changes. Pure; called by bridge.session before an
agent starts.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from bridge.wire import codec

_URL = re.compile(r"https?://[^\s/?#]", re.IGNORECASE)
_VARIABLE = re.compile(
    r"(OPENAI|AZURE_OPENAI|ANTHROPIC|GOOGLE_GEMINI|GEMINI|GOOGLE_VERTEX|POOLSIDE|POOLSIDE_STANDALONE"
    r"|KIMI|KIMI_MODEL|MOONSHOT|COPILOT_PROVIDER|CODEX|DEEPSEEK|MISTRAL|OPENROUTER|GROQ|XAI|QWEN"
    r"|DASHSCOPE|LITELLM|LLM|OLLAMA|FIREWORKS|TOGETHER|CEREBRAS|ZAI|MINIMAX)"
    r"_(BASE_URL|API_BASE|API_BASE_URL|API_URL|ENDPOINT|HOST)"
)
_DOCUMENT = re.compile(r"CODEX_\w+|DEFAULT_AUTH_REQUEST|\w+_CONFIG_CONTENT")
_FIELD = re.compile(r"base_?url|api_?base(_?url)?|endpoint", re.IGNORECASE)
# What may follow an address without making it another one.
_END = r"(?![\w.:@%-])"


def rewrite(
    env: dict[str, str], argv: list[str], intercept: str | None, route: Callable[[str], str]
) -> tuple[dict[str, str], list[str]]:
    """The environment and arguments with each model URL as `route` gives it.

    `route` is called once for each distinct URL; what it raises comes out.
    """
    known: dict[str, str] = {}

    def routed(url: str) -> str:
        if url not in known:
            known[url] = route(url)
        return known[url]

    everywhere = _everywhere(intercept, routed)
    found = {
        name: everywhere(_variable(name, value, intercept, routed)) for name, value in env.items()
    }
    return found, [everywhere(word) for word in argv]


def _everywhere(intercept: str | None, routed: Callable[[str], str]) -> Callable[[str], str]:
    """Replaces the intercept URL, and what begins with it, wherever it stands in a text."""
    if not intercept or not _URL.match(intercept):
        return lambda text: text
    url = intercept.rstrip("/")
    # JSON may write a slash as `\\/`.
    spelt = re.compile(re.escape(url).replace("/", r"\\?/") + _END)

    def replace(text: str) -> str:
        return spelt.sub(lambda _: routed(url), text) if spelt.search(text) else text

    return replace


def _variable(name: str, value: str, intercept: str | None, routed: Callable[[str], str]) -> str:
    """A well-known variable's value; one that the intercept covers is left to `_everywhere`."""

    def own(url: str) -> bool:
        covered = intercept and re.match(re.escape(intercept.rstrip("/")) + _END, url)
        return _URL.match(url) is not None and not covered

    if _VARIABLE.fullmatch(name):
        return routed(value.strip()) if own(value.strip()) else value
    if _DOCUMENT.fullmatch(name) and value.lstrip()[:1] in ("{", "["):
        try:
            document = codec.decode(value.encode(errors="surrogatepass"))
        except codec.JSONError:
            return value
        for url in dict.fromkeys(_urls(document)):
            if own(url):
                value = _in_document(value, url, routed(url))
    return value


def _urls(value: Any) -> Iterator[str]:
    """The strings of a document that stand under a base URL's name."""
    if isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            if isinstance(item, str) and _FIELD.fullmatch(str(key)):  # pyright: ignore[reportUnknownArgumentType]
                yield item
            else:
                yield from _urls(item)
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _urls(item)


def _in_document(text: str, url: str, replacement: str) -> str:
    """The document's text with a string replaced; the rest of it stays as it is written."""
    spelt = re.compile('"' + re.escape(url).replace("/", r"\\?/") + '"')
    return spelt.sub(lambda _: f'"{replacement}"', text)
