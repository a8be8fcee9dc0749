"""Reads a report as a browser would: what it refers to, its text, and what a headless Chromium says of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

_VOID = {"meta", "link", "br", "hr", "img", "input", "rect", "line", "circle", "path", "polyline"}
_REFERRING = {"src", "href", "xlink:href", "action", "data", "poster", "srcset", "background"}


@dataclass
class Reading(HTMLParser):
    """What a page holds.

    Attributes:
        references: values of attributes that name another resource.
        tags: every opening tag, in order.
        verdict: text of the first sentence.
        styles: text of all style elements.
    """

    references: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    verdict: str = ""
    styles: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for name, value in attrs if name in _REFERRING]
        if tag not in _VOID:
            self._open.append((tag, dict(attrs).get("class") or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self._open, f"</{tag}> closes nothing"
            assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        tag = self._open[-1][0] if self._open else ""
        if any(kind == "verdict" for _, kind in self._open):
            self.verdict += data
        if tag == "style":
            self.styles += data

    @property
    def is_closed(self) -> bool:
        """Whether every element that was opened was closed."""
        return not self._open


def read_page(path: Path) -> Reading:
    """Parse a page and check that it is whole and refers to nothing outside."""
    text = path.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    reading = Reading()
    reading.feed(text)
    reading.close()
    assert reading.is_closed
    assert [r for r in reading.references if not r.startswith(("#", "data:"))] == []
    assert "script" not in reading.tags
    assert not re.search(r"@import|url\(", reading.styles)
    assert not re.search(r"(?:https?:)?//[a-z0-9]", text, re.IGNORECASE)
    return reading


PAGE_WIDTHS = {"phone": 390, "screen": 1200, "paper": 718}
"""Pixels of CSS: a phone, a window, and A4 between margins of 10 mm."""

_MEASURE = """
const bad = [], widths = [];
for (const frame of document.querySelectorAll("iframe")) {
  const wide = frame.contentWindow.innerWidth;
  widths.push(wide);
  for (const e of frame.contentDocument.querySelectorAll("details")) e.open = true;
  for (const e of frame.contentDocument.body.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (!box.width) continue;
    const drawing = e.closest("svg");
    const within = drawing && e !== drawing ? drawing.getBoundingClientRect() : { left: 0, right: wide };
    if (box.left < within.left - 1 || box.right > within.right + 1)
      bad.push(`${e.tagName} ${box.left.toFixed()}..${box.right.toFixed()} of ${wide}: ${e.textContent.slice(0, 40)}`);
  }
  if (frame.contentDocument.documentElement.scrollWidth > wide) bad.push(`at ${wide} the page scrolls sideways`);
}
document.body.textContent = "measured" + JSON.stringify([widths, bad]) + "end";
"""


def too_wide(path: Path, *media: str) -> list[str]:
    """Return the elements that media of `PAGE_WIDTHS` cut, all unless named: wider than page or drawing.

    What is folded away is opened, and the console must stay empty.
    """
    page = path.read_text("utf-8")
    on_paper = page.replace("@media print", "@media all").replace("@media screen", "@media not all")
    named = media or tuple(PAGE_WIDTHS)
    frames = "".join(
        f'<iframe style="border:0;width:{PAGE_WIDTHS[medium]}px;height:900px" '
        f'srcdoc="{escape(on_paper if medium == "paper" else page)}"></iframe>'
        for medium in named
    )
    wrapper = path.with_name(f"{path.stem}_measured.html")
    wrapper.write_text(f"<!doctype html><body>{frames}<script>onload = () => {{{_MEASURE}}}</script>", "utf-8")
    shown, console = in_chromium(wrapper)
    assert console == []
    found = re.search(r"measured(.*)end", shown, re.DOTALL)
    assert found is not None, shown[-500:]
    widths, lines = json.loads(unescape(found[1]))
    assert widths == [PAGE_WIDTHS[medium] for medium in named]
    return [str(line) for line in lines]


def numbers_missing(path: Path, report: object) -> list[str]:
    """Return the numbers of a report of --json that its page does not show as they are."""
    text = unescape(path.read_text("utf-8"))
    shown = set(re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", text))
    wanted = re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", json.dumps(report))
    return [number for number in wanted if number not in shown]


def in_chromium(path: Path) -> tuple[str, list[str]]:
    """Open a page in headless Chromium; return what it made of it as HTML, and the lines of its console."""
    browser = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if browser is None:
        pytest.skip("no Chromium: Debian's package is chromium")
    profile = path.parent / "profile"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}"]
    command = [browser, *options, "--window-size=1400,900", "--enable-logging=stderr", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
