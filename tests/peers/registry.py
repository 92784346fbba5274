"""A little npm registry on loopback: packages made in the test, the requests for them noted.

The real npm installs from it (`npm_config_registry`). A test may hold an answer back, so that an
install stands still at a known place.
"""

import base64
import contextlib
import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from tests.peers.servers import Quiet, threaded


@dataclass
class Package:
    """One version of a package: its files, and what else its package.json says."""

    name: str
    version: str
    files: dict[str, str]
    manifest: dict[str, object] = field(default_factory=dict)

    @property
    def described(self) -> dict[str, object]:
        return {"name": self.name, "version": self.version, **self.manifest}

    def tarball(self) -> bytes:
        """What `npm pack` makes of it."""
        buffer = io.BytesIO()
        files = {"package.json": json.dumps(self.described), **self.files}
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for path, text in files.items():
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size, entry.mode = len(text.encode()), 0o755
                archive.addfile(entry, io.BytesIO(text.encode()))
        return gzip.compress(buffer.getvalue(), mtime=0)


@dataclass
class Registry:
    """A running registry. `asked`: the paths of all requests, in order."""

    url: str = ""
    packages: list[Package] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    hold: str = ""
    """A path with this in it is answered once `release` is set."""
    held: threading.Event = field(default_factory=threading.Event)
    """Set when an answer is held back."""
    release: threading.Event = field(default_factory=threading.Event)

    def tarballs(self) -> list[str]:
        """The tarballs that were asked for."""
        return [path for path in self.asked if path.endswith(".tgz")]

    def answer(self, path: str) -> bytes | None:
        name, _, file = unquote(path).lstrip("/").partition("/-/")
        found = [package for package in self.packages if package.name == name]
        if not found:
            return None
        if file:
            tarballs = {f"{package.version}.tgz": package for package in found}
            return tarballs[file].tarball() if file in tarballs else None
        return json.dumps(
            {
                "name": name,
                "dist-tags": {"latest": found[-1].version},
                "versions": {package.version: self._version(package) for package in found},
            }
        ).encode()

    def _version(self, package: Package) -> dict[str, object]:
        digest = base64.b64encode(hashlib.sha512(package.tarball()).digest()).decode()
        tarball = f"{self.url}/{package.name}/-/{package.version}.tgz"
        return package.described | {"dist": {"tarball": tarball, "integrity": f"sha512-{digest}"}}

    def environment(self, home: Path) -> dict[str, str]:
        """What makes npm use this registry only, and leave the machine's own files alone."""
        return {
            "npm_config_registry": self.url,
            "npm_config_userconfig": str(home / "npmrc"),
            "npm_config_cache": str(home / "npm-cache"),
            "npm_config_fetch_retries": "0",
        }


@contextlib.contextmanager
def npm_registry() -> Iterator[Registry]:
    """A registry; what it holds back is let go of at the end."""
    registry = Registry()

    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            registry.asked.append(self.path)
            if registry.hold and registry.hold in unquote(self.path):
                registry.held.set()
                registry.release.wait()
            body = registry.answer(self.path)
            with contextlib.suppress(OSError):
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body or b"{}")))
                self.end_headers()
                self.wfile.write(body or b"{}")

    with threaded(Handler) as registry.url:
        try:
            yield registry
        finally:
            registry.release.set()
