"""The documentation site: links, anchors, citations in the code, sizes of pages, and the strict build."""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from site_pages import generated_pages
from site_pages.api import grouped_names
from site_pages.citations import places
from site_pages.markdown import anchors, links, prose_lines

import tflq
from tests.support.tracked import ROOT, tracked_files

PAGE_BYTES, LINE_LETTERS, CELL_LETTERS = 12 * 1024, 160, 200
TABLES = {"reference/operators.md", "reference/coverage.md", "rules/aipu/front_end.md", "rules/aipu/operators.md"}
"""Pages that are mostly a generated table."""
NO_CITATIONS = {"docs/tests.md", "docs/times.md", "docs/NAME.md", "docs/PATH.md#anchor"}
"""Names that stand for any page, or that tests invent."""


def stored_pages() -> dict[str, str]:
    docs = ROOT / "docs"
    return {p.relative_to(docs).as_posix(): p.read_text(encoding="utf-8") for p in sorted(docs.rglob("*.md"))}


@cache
def pages() -> dict[str, str]:
    return {**stored_pages(), **generated_pages()}


@cache
def anchors_of(path: str) -> set[str]:
    return set(anchors(pages()[path]))


def resolves(page: str, link: str) -> bool:
    """Return whether a link of a page leads to a page and an anchor, or to a picture, of the site."""
    path, _, anchor = link.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
    if target in pages():
        return not anchor or anchor in anchors_of(target)
    return (ROOT / "docs" / target).is_file()


def test_links_lead_somewhere():
    wrong = [
        f"{page}: {link}"
        for page, text in pages().items()
        for link in links(text)
        if not re.match(r"https?:", link) and not resolves(page, link)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_of_the_repositorys_files_lead_somewhere(name):
    def is_known(link):
        path, _, anchor = link.partition("#")
        page = path.removeprefix("docs/")
        if path.startswith("docs/") and page in pages():
            return not anchor or anchor in anchors_of(page)
        return bool(path) and (ROOT / path).exists()

    text = (ROOT / name).read_text(encoding="utf-8")
    assert [link for link in links(text) if not re.match(r"https?:", link) and not is_known(link)] == []


def test_a_mention_of_a_page_is_a_link():
    mention = re.compile(r"(?<!\]\()\bdocs/[\w/]+\.md")
    assert [
        f"{page}: {line}" for page, text in stored_pages().items() for line in prose_lines(text) if mention.search(line)
    ] == []


def test_pages_are_short():
    sizes = {page: len(text.encode()) for page, text in stored_pages().items() if page not in TABLES}
    assert {page: size for page, size in sizes.items() if size > PAGE_BYTES} == {}


def test_lines_of_prose_are_short():
    lines = [
        f"{page}: {line}"
        for page, text in stored_pages().items()
        for line in prose_lines(text)
        if not line.startswith("|")
    ]
    assert [line for line in lines if len(line.partition(": ")[2]) > LINE_LETTERS] == []


def test_table_cells_are_short():
    cells = [
        f"{page}: {cell}"
        for page, text in stored_pages().items()
        if page not in TABLES
        for line in text.splitlines()
        if line.startswith("|")
        for cell in re.split(r"(?<!\\)\|", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line))
    ]
    assert [cell for cell in cells if len(cell.partition(": ")[2].strip()) > CELL_LETTERS] == []


def test_citations_in_code_lead_somewhere():
    """`docs/PATH.md#anchor`, or `docs/NAME.md, NUMBER`, which site_pages/citations.json maps to a place."""
    wrong = [
        f"{file.path}: {citation}"
        for file in tracked_files()
        if re.match(r"(?:tflq|tests|scripts|\.ci)/", file.path) and not file.path.endswith((".npz", ".xz", ".tflite"))
        for citation, place in places((ROOT / file.path).read_text(encoding="utf-8", errors="replace"))
        if citation not in NO_CITATIONS and (place is None or not resolves("", place))
    ]
    assert wrong == []


def test_numbers_in_messages_are_headings():
    """A number such as 17.6 in a message of GAP9 is the number of a heading of the known differences."""
    cited = {
        number
        for path in (ROOT / "tflq" / "converters" / "gap9").rglob("*.py")
        for number in re.findall(r"\b17\.\d+\b", path.read_text(encoding="utf-8"))
    }
    texts = [text for page, text in pages().items() if page.startswith("differences/gap9")]
    stated = {number for text in texts for number in re.findall(r"^### (17\.\d+) ", text, re.MULTILINE)}
    assert cited
    assert cited <= stated


def test_every_public_name_has_a_page():
    assert grouped_names() == set(tflq.__all__) - {"__version__"}


def test_the_build_is_strict_and_needs_no_network(tmp_path: Path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: it comes with tflq[docs]")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed: it comes with tflq[docs]")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    fetched = re.compile(r"""<(?:script|img|link rel="(?:stylesheet|icon|preload)")[^>]*(?:src|href)="https?:""")
    assert [path.name for path in tmp_path.rglob("*.html") if fetched.search(path.read_text(encoding="utf-8"))] == []
