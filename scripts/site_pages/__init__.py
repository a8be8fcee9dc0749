"""Pages of the documentation site that the code determines: they are built, never stored or edited."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from site_pages import api, commands, notebooks, operators, repository, settings
from site_pages.citations import link_citations
from site_pages.markdown import anchors, title

DOCS = Path(__file__).resolve().parents[2] / "docs"


def generated_pages() -> Mapping[str, str]:
    """Return the Markdown text of each generated page by its path below docs/; citations of pages are links."""
    parts = (commands.pages(), settings.pages(), operators.pages(), api.pages(), repository.pages(), notebooks.pages())
    pages = {path: text for part in parts for path, text in part.items()}
    return {page: link_citations(text, partial(_link, pages, page)) for page, text in pages.items()}


def _link(pages: Mapping[str, str], page: str, place: str) -> str:
    """Return the Markdown link from a page to a place; its text is the title of the page or section."""
    path, _, anchor = place.partition("#")
    text = pages[path] if path in pages else (DOCS / path).read_text(encoding="utf-8")
    label = anchors(text)[anchor] if anchor else title(text)
    return f"[{label}]({posixpath.relpath(place, posixpath.dirname(page))})"
