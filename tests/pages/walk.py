"""Every page that the dashboard has, found by its routes, and what is looked at on each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from playwright.async_api import Page

from onthedot.web import routes
from tests.pages.hostile import Hostile

__all__ = ["action_of", "actions_on", "addresses", "faults", "look_at", "pages_of", "places_of", "unexpected"]

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CHOICES = ("act", "verb")
"""Fields in which buttons of the same form say what they do."""
_PLACE = re.compile(r"{(\w+)}")

_FOUND = """
async (rules) => {
  const found = await axe.run(document, {runOnly: {type: "tag", values: rules}, resultTypes: ["violations"]});
  return found.violations.map((one) => one.id + ": " + one.help + " at "
    + one.nodes.slice(0, 3).map((node) => node.target.join(" ") + " " + node.html.slice(0, 160)).join(" | "));
}
"""
_STATE = """
() => {
  const shown = (one) => one.checkVisibility({visibilityProperty: true});
  const told = (one) => one.outerHTML.slice(0, 120);
  const all = (selector, wrong) => [...document.querySelectorAll(selector)].filter(wrong).map(told);
  const control = (one) => shown(one) && !one.disabled && one.type !== "hidden" && !one.matches(".word, .word *");
  return {
    hacked: window.hacked ?? null,
    probes: document.querySelectorAll("xss-probe, img[src=x]").length,
    wider: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    widest: all("body *", (one) => one.getBoundingClientRect().right > innerWidth + 1).slice(0, 4).join(" | "),
    title: document.title,
    // not one.id, which in a form is its field of that name
    twice: all("[id]", (one) => document.getElementById(one.getAttribute("id")) !== one),
    // without a mouse: each control is a stop of the Tab key, in the order of the page
    unreached: all("a, button, input, select, textarea, summary", (one) => control(one) && one.tabIndex < 0),
    jumps: all("[tabindex]", (one) => one.tabIndex > 0),
    // what does nothing says why
    silent: all("button:disabled", (one) => shown(one) && !one.title && !one.closest(".bulk")),
  };
}
"""
_ACTIONS = """
() => [...document.querySelectorAll("form[method=post]")].flatMap((form) => {
  const hidden = [...form.querySelectorAll("input[type=hidden]")].map((one) => [one.name, one.value]);
  return [...form.querySelectorAll("button:not([type=button])")].map((one) => {
    const path = new URL(one.getAttribute("formaction") ?? form.getAttribute("action"), location.href).pathname;
    return [path, Object.fromEntries([...hidden, [one.name, one.value]])];
  });
})
"""


def places_of(hostile: Hostile) -> dict[str, list[str]]:
    """What stands for each name in a path. A page with another name is not walked before it is said here."""
    jobs = [str(job) for job in hostile.jobs]
    return {
        "job_id": [jobs[0], jobs[1], jobs[-3], jobs[-2]],
        "run_id": [hostile.failed_run, hostile.done_run],
        "version": ["1"],
        "node_id": [hostile.node],
        "destination": ["http%3A%2F%2F127.0.0.1:9"],
        "scheme": ["http:"],
        "host": ["127.0.0.1:9"],
        "key_id": ["1"],  # there is none: its page says so
        "operation_id": ["1"],  # there is none: its page says so
        "slot": [hostile.done_run.split("-")[1]],
    }


def pages_of(method: str = "GET") -> list[str]:
    """Paths as they are declared: of all that is shown, or of all that forms are sent to."""
    declared = [endpoint.operation for endpoint in routes]
    if method == "GET":
        return [each.path for each in declared if each.method == "GET" and each.answers.get(200) == "text/html"]
    return [each.path for each in declared if each.method == method]


def action_of(path: str, fields: Mapping[str, str]) -> str:
    """What sending a form to an address is: the declared path, and which of its buttons was pressed.
    `/jobs/7/edit` with `act=save` is `/jobs/{job_id}/edit act=save`."""
    for declared in pages_of("POST"):
        if re.fullmatch(_PLACE.sub("[^/]+", declared), path):
            chosen = next((f" {name}={fields[name]}" for name in CHOICES if fields.get(name)), "")
            return declared + chosen
    return f"{path} (not declared)"


async def actions_on(page: Page) -> set[str]:
    """What the forms of a page would do."""
    found: list[tuple[str, dict[str, str]]] = await page.evaluate(_ACTIONS)
    return {action_of(path, fields) for path, fields in found}


def addresses(path: str, places: dict[str, list[str]]) -> Iterator[str]:
    """A path with values in it, as many as the name with the most has."""
    names = _PLACE.findall(path)
    missing = [name for name in names if name not in places]
    assert not missing, f"{path}: say in tests/pages/walk.py:places_of what {missing} stand for"
    for turn in range(max((len(places[name]) for name in names), default=1)):
        yield path.format(**{name: places[name][min(turn, len(places[name]) - 1)] for name in names})


def unexpected(complaints: list[str], address: str) -> list[str]:
    """What a browser complained about, without the page that is not there."""
    gone = any(place in address for place in ("/operations/", "/settings/keys/"))
    return [each for each in complaints if not (gone and "404" in each)]


async def look_at(page: Page, address: str) -> list[str]:
    """What is wrong with the page at an address."""
    answer = await page.goto(address)
    assert answer is not None
    return [f"{answer.status}"] if answer.status >= 500 else await faults(page)


async def faults(page: Page) -> list[str]:
    """What is wrong with a page for who can't see it or has no mouse, on a narrow screen, or if a name has become
    markup."""
    await page.evaluate(AXE)
    problems: list[str] = await page.evaluate(_FOUND, RULES)
    state: dict[str, Any] = await page.evaluate(_STATE)
    if state["hacked"] is not None:
        problems.append(f"a script of somebody else ran: {state['hacked']}")
    if state["probes"]:
        problems.append(f"{state['probes']} elements were made of texts")
    if state["wider"] > 0:
        problems.append(f"{state['wider']} px wider than the screen: {state['widest']}")
    if not state["title"]:
        problems.append("no title")
    problems += [f"the Tab key does not stop at {each}" for each in state["unreached"]]
    problems += [f"its id is another's, too: {each}" for each in state["twice"]]
    problems += [f"the Tab key jumps to {each}" for each in state["jumps"]]
    problems += [f"disabled without a reason: {each}" for each in state["silent"]]
    return problems
