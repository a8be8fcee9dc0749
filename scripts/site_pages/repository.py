"""Pages that are files at the root of the repository: their links are rewritten for the site."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "CONTRIBUTING.md": "contributing/index.md",
    "CHANGELOG.md": "contributing/changelog.md",
    "SECURITY.md": "contributing/security.md",
}
_LINK = re.compile(r"\]\((?!\w+:)([^)#]+)")


def pages() -> Mapping[str, str]:
    """Return the pages by path."""
    return {path: _for_site((ROOT / name).read_text(encoding="utf-8")) for name, path in FILES.items()}


def _for_site(text: str) -> str:
    """Rewrite links into docs/ and between the files; other files of the repository become code."""
    return _LINK.sub(lambda match: f"]({_target(match[1])}", text)


def _target(path: str) -> str:
    if path in FILES:
        return Path(FILES[path]).name
    return "../" + path.removeprefix("docs/")
