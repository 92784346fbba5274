"""Looks at a trace page in a real Chromium, as a person would, and tells what it saw as JSON.

Run by the Python of .peers/browser: `page_driver.py PAGE SCREENSHOTS`. Nothing may leave the page:
every request is noted.
"""

import json
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

SELECTED = '.row[aria-selected="true"]'


def status(page: Page) -> str:
    return page.inner_text("#status")


def use_filter(page: Page, text: str) -> str:
    page.fill("#filter", text)
    page.press("#filter", "Enter")
    return status(page)


def look(page: Page, folder: Path) -> dict[str, Any]:
    seen: dict[str, Any] = {"title": page.title(), "status": status(page)}
    page.screenshot(path=folder / "light.png")
    page.focus("#grid")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    seen["third"] = page.get_attribute(SELECTED, "aria-label")
    seen["detail"] = page.inner_text("#detail h2")
    page.keyboard.press("End")
    seen["last"] = page.get_attribute(SELECTED, "aria-rowindex")
    page.keyboard.press("Home")
    page.keyboard.press("n")
    seen["finding"] = page.inner_text("#detail ul") if page.query_selector("#detail ul") else ""
    page.keyboard.press("Enter")
    seen["focus"] = page.evaluate("document.activeElement.id")
    page.keyboard.press("Escape")
    seen["back"] = page.evaluate("document.activeElement.id")
    seen["filtered"] = use_filter(page, "method:session/prompt is:request")
    page.focus("#grid")
    page.keyboard.press("Home")
    page.keyboard.press("p")
    seen["partner"] = page.inner_text("#detail h2") + page.inner_text("#detail table")
    seen["wrong"] = use_filter(page, "chanel:acp")
    seen["invalid"] = page.get_attribute("#filter", "aria-invalid")
    use_filter(page, "")
    page.click("#collapse")
    seen["apart"] = status(page)
    page.click("#collapse")
    page.focus("#grid")
    page.keyboard.press("Home")
    page.click('.row[aria-rowindex="2"]')
    seen["clicked"] = page.get_attribute(SELECTED, "aria-rowindex")
    page.click("#theme")
    page.screenshot(path=folder / "dark.png")
    seen["theme"] = page.evaluate("document.documentElement.dataset.theme")
    seen["injected"] = page.evaluate("window.injected === undefined")
    return seen


SCROLL = """async () => {
  const grid = document.getElementById("grid");
  let most = 0, longest = 0, last = performance.now();
  for (let step = 0; step <= 200; step += 1) {
    grid.scrollTop = grid.scrollHeight * step / 200;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    most = Math.max(most, document.querySelectorAll(".row").length);
  }
  const rows = [...document.querySelectorAll(".row")];
  const indexes = rows.map((row) => Number(row.getAttribute("aria-rowindex")));
  return {most, longest, last: Math.max(...indexes)};
}"""


def main() -> None:
    path, folder = Path(sys.argv[1]), Path(sys.argv[2])
    with sync_playwright() as playwright:
        options = ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=options)
        page = browser.new_page(viewport={"width": 1400, "height": 850})
        requests: list[str] = []
        errors: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda told: errors.append(told.text) if told.type == "error" else None)
        page.goto(path.as_uri())
        page.wait_for_selector(".row")
        seen = look(page, folder) | {"scroll": page.evaluate(SCROLL)}
        browser.close()
    print(json.dumps(seen | {"requests": requests, "errors": errors}))


main()
