"""One person at one screen: what they press and type, what was sent for it, and what is wrong with what they see.

On a desk (1440 px) everything is done with the keyboard alone, on a phone (390 px) with the finger.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from playwright.async_api import Locator, Page, Request, expect

from tests.pages.walk import action_of, faults

__all__ = ["PATIENCE", "Scene"]

PATIENCE = 90_000
"""Milliseconds that a machine which does other things may take for one step; pytest's own time-out bounds a walk."""

_STEPS = """
(wanted) => {
  const within = [...document.querySelectorAll("dialog[open]")].pop() ?? document;
  const all = [...within.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")];
  const stops = all.filter((one) => one.tabIndex >= 0 && !one.disabled && one.type !== "hidden"
    && one.checkVisibility({visibilityProperty: true}) && (one.type !== "radio" || one.checked || one === wanted));
  return stops.indexOf(wanted) - stops.indexOf(document.activeElement);
}
"""


class Scene:
    """A logged-in person on a page of the dashboard."""

    def __init__(self, page: Page, base: str, *, keyboard: bool) -> None:
        self.page, self.base, self.keyboard = page, base, keyboard
        self.sent: set[str] = set()
        self.wrong: list[str] = []
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.context.on("request", self._note)
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _note(self, request: Request) -> None:
        if request.method == "POST" and request.url.startswith(self.base):
            fields = parse_qs(request.post_data or "", keep_blank_values=True)
            self.sent.add(action_of(urlsplit(request.url).path, {name: values[-1] for name, values in fields.items()}))

    # Where one is

    async def go(self, path: str) -> None:
        await self.page.goto(self.base + path)

    @property
    def last(self) -> str:
        """The last part of the address: the id of what is shown."""
        return urlsplit(self.page.url).path.rpartition("/")[2]

    async def sees(self, text: str, place: str = "body", within: float = PATIENCE / 1000) -> None:
        await expect(self.page.locator(place).first).to_contain_text(text, timeout=within * 1000)

    async def look(self, *, may: tuple[int, ...] = ()) -> None:
        """At what is there now. `may`: errors that were meant to be answered."""
        where = urlsplit(self.page.url).path
        await self.page.evaluate("scrollTo(0, 0)")  # further down, what stays at the top covers part of something
        found = await faults(self.page)
        refused = [f"status of {status}" for status in may]
        found += [each for each in self.complaints if not any(status in each for status in refused)]
        self.complaints.clear()
        self.wrong += [f"{where}: {each}" for each in found]

    # What can be pressed

    def named(self, name: str, within: str = "") -> Locator:
        """A link, a button or what opens a menu, by its words; in the dialog, if one is open."""
        words = re.compile(rf"^\s*{re.escape(name)}\s*$")
        place = within or "dialog[open], body:not(:has(dialog[open]))"
        things = self.page.locator(place).locator("a, button:not(.word), summary")
        return things.filter(has_text=words).filter(visible=True).first

    def field(self, label: str) -> Locator:
        """An input by its label, required or not."""
        words = re.compile(rf"^\s*{re.escape(label)}(\s*\*)?\s*$", re.IGNORECASE)
        place = self.page.locator("dialog[open], body:not(:has(dialog[open]))")
        typed = self.page.locator("input:not([type=radio], [type=checkbox]), textarea, select")
        return place.get_by_label(words).and_(typed).filter(visible=True).first

    # What one does

    async def press(self, thing: str | Locator, within: str = "") -> None:
        it = self.named(thing, within) if isinstance(thing, str) else thing
        if not self.keyboard:
            await it.click()
            return
        await self._reach(it)
        await self.page.keyboard.press("Enter")

    async def send(self, thing: str | Locator, within: str = "") -> None:
        """Press what leads to another page, and wait for that."""
        async with self.page.expect_navigation(wait_until="load"):
            await self.press(thing, within)

    async def ask(self, name: str, within: str = "") -> None:
        """Press what opens a question, and look at it."""
        await self.press(name, within)
        await expect(self.page.locator("dialog[open] h1")).to_be_visible(timeout=PATIENCE)
        await self.look()

    async def type(self, label: str, text: str) -> None:
        it = self.field(label)
        if not self.keyboard or await it.get_attribute("type") == "datetime-local":  # its keys depend on the language
            await it.fill(text)
            return
        await self._reach(it)
        await self.page.keyboard.press("Control+A")
        await self.page.keyboard.insert_text(text)
        await expect(it).to_have_value(text)

    async def choose(self, label: str, option: str) -> None:
        """In a list of choices."""
        it = self.field(label)
        if not self.keyboard:
            await it.select_option(label=option)
            return
        await self._reach(it)
        await self.page.keyboard.type(option)
        await expect(it.locator("option:checked")).to_have_text(option)

    async def tick(self, it: Locator) -> None:
        if not self.keyboard:
            await it.check()
            return
        await self._reach(it)
        await self.page.keyboard.press("Space")
        await expect(it).to_be_checked()

    async def pick(self, group: str, value: str) -> None:
        """One of several radio buttons, which share one stop of the Tab key."""
        wanted = self.page.locator(f"input[name='{group}'][value='{value}']")
        if not self.keyboard:
            await self.page.locator(f"label:has(input[name='{group}'][value='{value}'])").click()
            await expect(wanted).to_be_checked()
            return
        chosen = self.page.locator(f"input[name='{group}']:checked")
        await self._reach(chosen if await chosen.count() else self.page.locator(f"input[name='{group}']").first)
        if not await chosen.count():
            await self.page.keyboard.press("Space")
        for _ in range(await self.page.locator(f"input[name='{group}']").count()):
            if await wanted.is_checked():
                return
            await self.page.keyboard.press("ArrowRight")
        await expect(wanted).to_be_checked()

    async def _reach(self, it: Locator) -> None:
        """With the Tab key. A date has several stops, and what scrolls has one: the rest is pressed one by one."""
        await it.wait_for()
        handle = await it.element_handle()
        steps = 0
        for _ in range(4):  # the first key goes on where the browser thinks one is, which a page can't ask for
            steps = await self.page.evaluate(_STEPS, handle)
            for _ in range(abs(steps)):
                await self.page.keyboard.press("Tab" if steps > 0 else "Shift+Tab")
            if await self.page.evaluate("(wanted) => document.activeElement === wanted", handle):
                return
        for _ in range(60):
            await self.page.keyboard.press("Tab" if steps >= 0 else "Shift+Tab")
            if await self.page.evaluate("(wanted) => document.activeElement === wanted", handle):
                return
        raise AssertionError(
            f"the Tab key does not lead to {await it.evaluate('(one) => one.outerHTML.slice(0, 200)')}"
        )
