"""An agent's recipe as `agents show` tells it: its profile filled in as far as can be known here.

Rule: a key is masked before anything is filled in, so it stands nowhere. Starts and writes nothing.
Called by `bridge.cli.agents`.
"""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bridge.agent import installed
from bridge.agent.endpoint import Endpoint, endpoint
from bridge.agent.rendering import Inputs, Places, render
from bridge.errors import BridgeError
from protocol_schemas.host import ModelEndpoint
from protocol_schemas.profile import Profile

MASK = "***"


def recipe(profile: Profile, environment: Mapping[str, str], cwd: str) -> dict[str, Any]:
    """Packages, install and node; command, environment, files by path and `_meta`. What only a
    session knows stands as its placeholder, `${state}` say."""
    found = installed.find(profile, environment)
    inputs = Inputs(
        endpoint=_endpoint(profile, environment),
        state=Path("${state}"),
        cwd=cwd,
        session="${session}",
        places=lambda: _places(found),
    )
    rendered = render(profile, inputs)
    install = profile.install
    return {
        "name": profile.name,
        "title": profile.title,
        "packages": install.packages if install is not None else {},
        "scripts": install is not None and install.scripts,
        "node": install.node if install is not None else "",
        "installed": str(found.prefix) if found is not None else None,
        "own_node": str(found.node) if found is not None and found.node else None,
        "wires": list(profile.wires),
        "command": rendered.argv,
        "environment": rendered.environment,
        "files": {file.path: file.data.decode(errors="replace") for file in rendered.files},
        "meta": rendered.meta,
    }


def _endpoint(profile: Profile, environment: Mapping[str, str]) -> Endpoint:
    """The model that the environment names, or placeholders for it."""
    try:
        told = endpoint(profile, ModelEndpoint(), environment)
    except BridgeError:
        wire = next(iter(profile.wires))
        told = Endpoint(wire, "${model.url}", MASK, "${model.name}")
    return told._replace(key=MASK)


def _places(found: installed.Found | None) -> Places:
    if found is None:
        return Places(Path("${bin}"), Path("${prefix}"))
    return Places(found.prefix / "node_modules/.bin", found.prefix, found.node)


def shown(fields: Mapping[str, Any]) -> Iterator[str]:
    """The recipe as lines."""
    from bridge.wire import codec

    packages: dict[str, str] = fields["packages"]
    how = f"no; acp-mcp-bridge agents install {fields['name']}" if packages else "not with npm"
    rows = [
        ("packages", [f"{name} {version}" for name, version in packages.items()]),
        ("scripts", ["run when it is installed"] if fields["scripts"] else []),
        ("node", [f"{fields['node']} or newer"] if fields["node"] else []),
        ("own node", [fields["own_node"]] if fields["own_node"] else []),
        ("installed", [fields["installed"] or how]),
        ("wires", [", ".join(fields["wires"])]),
        ("command", [shlex.join(fields["command"])]),
        ("environment", [f"{name}={text}" for name, text in fields["environment"].items()]),
        ("_meta", [codec.encode(fields["meta"]).decode()] if fields["meta"] else []),
    ]
    rows += [(path, text.splitlines()) for path, text in fields["files"].items()]
    width = max(len(title) for title, _ in rows)
    yield f"{fields['name']}: {fields['title']}"
    for title, lines in rows:
        for index, line in enumerate(lines):
            yield f"  {'' if index else title:{width}}  {line}"
