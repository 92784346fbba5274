"""Looks at a trace page in a real Chromium, as a person would, and tells what it saw as JSON.

Run by the Python of .peers/browser, with a directory for the screenshots:

    page_driver.py look PAGE SHOTS            everything, with the keyboard and the mouse
    page_driver.py stranger PAGE SHOTS        who knows nothing but what the page says
    page_driver.py scroll PAGE SHOTS          from end to end
    page_driver.py live URL SHOTS TRACE LINE  a page that grows: LINE is added to the trace

Every request that the page makes is noted.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

SELECTED = '.row[aria-selected="true"]'
Seen = dict[str, Any]


def status(page: Page) -> str:
    return page.inner_text("#status")


def use_filter(page: Page, text: str) -> str:
    page.fill("#filter", text)
    page.press("#filter", "Enter")
    return status(page)


def look(page: Page, shots: Path) -> Seen:
    seen: Seen = {"title": page.title(), "status": status(page)}
    page.screenshot(path=shots / "light.png")
    seen["contrast"] = {"light": page.evaluate(CONTRAST)}
    page.focus("#grid")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    seen["third"] = page.get_attribute(SELECTED, "aria-label")
    seen["detail"] = page.inner_text("#detail h2")
    seen["tree"] = page.locator("body").aria_snapshot()
    seen["active"] = page.evaluate(
        "document.getElementById(document.getElementById('grid')"
        ".getAttribute('aria-activedescendant')).getAttribute('aria-label')"
    )
    page.keyboard.press("End")
    seen["last"] = page.get_attribute(SELECTED, "aria-posinset")
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
    page.click('.row[aria-posinset="2"]')
    seen["clicked"] = page.get_attribute(SELECTED, "aria-posinset")
    page.click("#theme")
    page.screenshot(path=shots / "dark.png")
    seen["contrast"]["dark"] = page.evaluate(CONTRAST)
    seen["theme"] = page.evaluate("document.documentElement.dataset.theme")
    seen["injected"] = page.evaluate("window.injected === undefined")
    page.set_viewport_size({"width": 480, "height": 800})
    page.screenshot(path=shots / "narrow.png")
    seen["overflow"] = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return seen


def stranger(page: Page, shots: Path) -> Seen:
    """By what a reader says of the page alone, once with the mouse and once with the keyboard."""
    page.get_by_role("button", name="Next finding").click()
    said = page.get_by_role("region", name="Message")
    clicked = {"message": said.inner_text(), "row": row(page)}
    page.screenshot(path=shots / "finding.png")
    page.reload()
    page.wait_for_selector(".row")
    page.keyboard.press("n")
    pressed = {"message": said.inner_text(), "row": row(page)}
    page.reload()
    page.wait_for_selector(".row")
    tabbed = ""
    for _ in range(12):
        page.keyboard.press("Tab")
        tabbed = page.evaluate("document.activeElement.textContent")
        if tabbed == "Next finding":
            break
    page.keyboard.press("Enter")
    return {"clicked": clicked, "pressed": pressed, "tabbed": {"by": tabbed, "row": row(page)}}


def row(page: Page) -> str:
    """What is said of the chosen row."""
    return page.get_by_role("option", selected=True).get_attribute("aria-label") or ""


SCROLL = """async () => {
  const grid = document.getElementById("grid");
  const space = document.getElementById("space");
  let most = 0, made = 0, longest = 0, long = 0, scripts = 0;
  for (let step = 0; step < 50; step += 1) {
    const start = performance.now();
    draw(true);  // all rows that can be seen, anew
    scripts += (performance.now() - start) / 50;
  }
  new MutationObserver((changes) => {
    made = Math.max(made, changes.reduce((sum, change) => sum + change.addedNodes.length, 0));
  }).observe(space, { childList: true });
  await new Promise(requestAnimationFrame);
  let last = performance.now();
  for (let step = 0; step <= 200; step += 1) {
    grid.scrollTop = grid.scrollHeight * step / 200;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    longest = Math.max(longest, now - last);
    if (now - last > 50) long += 1;
    last = now;
    most = Math.max(most, document.querySelectorAll(".row").length);
  }
  const rows = [...document.querySelectorAll(".row")];
  const indexes = rows.map((row) => Number(row.getAttribute("aria-posinset")));
  return {most, made, longest, long, scripts, last: Math.max(...indexes)};
}"""

# The least contrast of any text with what is behind it (WCAG 2.1, 1.4.3).
CONTRAST = """() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const found = channels(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  let least = 21, where = "";
  for (const node of document.querySelectorAll("body *")) {
    const texts = [...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!texts || !node.getClientRects().length) continue;
    const pair = [light(channels(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < least) [least, where] = [ratio, `${node.tagName}.${node.className}`];
  }
  return {least, where};
}"""


def scroll(page: Page, shots: Path) -> Seen:
    seen = {"status": status(page), "scroll": page.evaluate(SCROLL)}
    page.screenshot(path=shots / "fifty-thousand.png")
    (shots / "scroll.json").write_text(json.dumps(seen["scroll"]))
    return seen


def live(page: Page, shots: Path, trace: str, line: str) -> Seen:
    said = page.locator("#status")
    expect(said).to_contain_text("0 findings", timeout=20_000)
    before = status(page)
    with open(trace, "a") as file:
        file.write(line + "\n")
    expect(said).to_contain_text("new: ", timeout=20_000)
    page.get_by_role("button", name="Next finding").click()
    message = page.get_by_role("region", name="Message").inner_text()
    page.screenshot(path=shots / "live.png")
    return {"before": before, "after": status(page), "row": row(page), "message": message}


def main() -> None:
    what, target, shots, *more = sys.argv[1:]
    folder = Path(shots)
    steps: dict[str, Callable[..., Seen]] = {
        "look": look,
        "stranger": stranger,
        "scroll": scroll,
        "live": live,
    }
    with sync_playwright() as playwright:
        options = ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=options)
        page = browser.new_page(viewport={"width": 1400, "height": 850}, color_scheme="light")
        requests: list[str] = []
        errors: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda told: errors.append(told.text) if told.type == "error" else None)
        page.goto(target if "://" in target else Path(target).absolute().as_uri())
        page.wait_for_selector(".row")
        seen = steps[what](page, folder, *more)
        browser.close()
    print(json.dumps(seen | {"requests": requests, "errors": errors}))


main()
