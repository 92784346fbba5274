"""One daemon under measurement, driven as verifiers 0.4 drives it."""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

AGENT = [sys.executable, "-I", "-S", str(Path(__file__).with_name("agent.py"))]
# The caller's shell must not decide how Python buffers or caches.
HIDDEN = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in HIDDEN}


class Daemon:
    """A live daemon; its own process is what CPU time and memory are read of."""

    def __init__(self, command: list[str]) -> None:
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.stdin, False)
        self.buffer = bytearray()
        self.requests = 0

    def request(self, operation: str, **fields: Any) -> bytes:
        self.requests += 1
        value = {"id": self.requests, "operation": operation, **fields}
        data = json.dumps(value, ensure_ascii=False).encode()
        return len(data).to_bytes(8, "big") + data

    def prompt(self, text: str) -> bytes:
        """The packet that asks for one turn."""
        return self.request(
            "prompt",
            config={
                "command": AGENT,
                "user_contents": [text],
                "mcp_urls": {},
                "mcp_headers": {},
                "system_prompt": "",
                "session_meta": {},
                "client_capabilities": {},
                "tool_interception": None,
            },
        )

    def exchange(self, data: bytes, seconds: float = 300) -> dict[str, Any]:
        """Writes a packet and reads the response, each as the daemon is ready for it."""
        left, end = memoryview(data), time.monotonic() + seconds
        while True:
            size = int.from_bytes(self.buffer[:8], "big") if len(self.buffer) >= 8 else None
            if size is not None and len(self.buffer) >= 8 + size:
                response = json.loads(self.buffer[8 : 8 + size])
                del self.buffer[: 8 + size]
                return response
            wait = max(0.0, end - time.monotonic())
            wants = [self.stdin] if left else []
            readable, writable, _ = select.select([self.stdout], wants, [], wait)
            if not readable and not writable:
                raise TimeoutError(f"no answer in {seconds} s")
            if writable:
                left = left[os.write(self.stdin, left) :]
            if readable:
                part = os.read(self.stdout, 1 << 20)
                if not part:
                    raise EOFError(f"the daemon ended with {self.process.wait()}")
                self.buffer += part

    def turn(self, text: str) -> str:
        """One turn's reply."""
        response = self.exchange(self.prompt(text))
        if not response["ok"]:
            raise RuntimeError(response["error"])
        return response["result"]["reply"]

    def cpu(self) -> float:
        """Seconds of CPU that the daemon has used, without its children."""
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def memory(self, field: str) -> float:
        """MiB of VmHWM (peak) or Pss."""
        source = "smaps_rollup" if field == "Pss" else "status"
        for line in Path(f"/proc/{self.process.pid}/{source}").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
        raise KeyError(field)

    def close(self) -> float:
        """Shuts it down in order; the seconds that took."""
        start = time.monotonic()
        self.exchange(self.request("shutdown"))
        assert self.process.stdin is not None
        self.process.stdin.close()
        # `Popen.wait` with a time-out looks every so often, up to 50 ms late.
        ended, _, _ = select.select([os.pidfd_open(self.process.pid)], [], [], 30)
        assert ended, "the daemon did not end within 30 s of its shutdown"
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return time.monotonic() - start
