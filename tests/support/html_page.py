"""Reads a report as a browser would: what it refers to, its text, and what a headless Chromium says of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
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
        tag, kind = self._open[-1] if self._open else ("", "")
        if kind == "verdict":
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


def in_chromium(path: Path) -> tuple[str, list[str]]:
    """Open a page in headless Chromium; return what it made of it as HTML, and the lines of its console."""
    browser = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if browser is None:
        pytest.skip("no Chromium: Debian's package is chromium")
    profile = path.parent / "profile"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}"]
    command = [browser, *options, "--enable-logging=stderr", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
