"""Citations of pages in code and messages: `docs/PATH.md#anchor`, or the older form `docs/NAME.md, NUMBER`.

citations.json maps the old name of a page and the number of a section to the present page and anchor. Numbers that
messages state without a page, such as (17.6), are in the headings of docs/differences/gap9.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

PLACES: Mapping[str, Mapping[str, str]] = json.loads(
    Path(__file__).with_name("citations.json").read_text(encoding="utf-8")
)
"""Name of a page before the site -> number of a section ("": the page) -> path below docs/ with an anchor."""
_NUMBER = r"\d+(?:\.\d+)?"
_CITATION = re.compile(
    r"docs/(?P<path>[\w/]+)\.md(?:#(?P<anchor>[\w-]+(?:\.[\w-]+)*))?"
    rf"(?:, (?P<numbers>{_NUMBER}(?:(?:, | and | to ){_NUMBER})*))?"
)


def places(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each citation of a text with its path and anchor below docs/; None if it names no page."""
    for match in _CITATION.finditer(text):
        yield from ((match[0], place) for place in _places(match))


def link_citations(text: str, link: Callable[[str], str]) -> str:
    """Return a text with each citation as a link; `link` returns the Markdown link of a place."""
    return _CITATION.sub(lambda match: ", ".join(link(place) for place in _places(match) if place), text)


def modernize(text: str) -> str:
    """Return a text with citations of the older form as paths and anchors; of several sections only the pages."""
    return _CITATION.sub(lambda match: _paths(match) if match["path"] in PLACES else match[0], text)


def _places(match: re.Match[str]) -> list[str | None]:
    sections = PLACES.get(match["path"])
    if sections is None:
        return [f"{match['path']}.md" + (f"#{match['anchor']}" if match["anchor"] else "")]
    numbers = re.findall(_NUMBER, match["numbers"] or "")
    return list(dict.fromkeys(sections.get(number) for number in numbers or [""]))


def _paths(match: re.Match[str]) -> str:
    known = [place for place in _places(match) if place]
    if len(known) > 1:
        known = list(dict.fromkeys(place.partition("#")[0] for place in known))
    return ", ".join(f"docs/{place}" for place in known) or match[0]
