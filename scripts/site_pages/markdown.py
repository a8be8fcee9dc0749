"""What the tests of the site read in a Markdown page: headings with their anchors, links, prose lines, table cells."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_HEADING = re.compile(r"(#{1,6}) (.*)")
_LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()]*\))?[^()\s]*)\)")
_STATED = re.compile(r"\s*\{ *#([\w.-]+) *\}\s*$")


def prose_lines(text: str) -> Iterator[str]:
    """Yield the lines of a page outside blocks of code; inline code is emptied."""
    fence = ""
    for line in text.splitlines():
        mark = re.match(r" *(```+|~~~+)", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and not line.startswith("    "):
            yield re.sub(r"(`+)[^`].*?\1(?!`)", "``", line)


def title(text: str) -> str:
    """Return the text of a page's first heading."""
    return text.split("\n", 1)[0].removeprefix("# ")


def anchors(text: str) -> dict[str, str]:
    """Return the anchor of each heading of a page with the heading's text, as Python-Markdown's toc makes them."""
    headings: dict[str, str] = {}
    code = False
    for line in text.splitlines():
        code ^= line.startswith("```")
        match = _HEADING.match(line)
        if match and not code:
            stated = _STATED.search(match[2])
            slug = stated[1] if stated else _slug(match[2])
            while slug in headings:
                slug = re.sub(r"(?:_(\d+))?$", lambda m: f"_{int(m[1] or 0) + 1}", slug, count=1)
            headings[slug] = _STATED.sub("", match[2])
    return headings


def links(text: str) -> list[str]:
    """Return the targets of a page's links."""
    return [match[1] for line in prose_lines(text) for match in _LINK.finditer(line)]


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
