"""The blocks of guides/python.md and internals/rewriting.md run in order, in a folder, and print the text below."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.tracked import ROOT

PAGE = ROOT / "docs" / "guides" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [PAGE, ROOT / "docs" / "internals" / "rewriting.md"], ids=lambda page: page.name)
def test_blocks_print_what_stands_under_them(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == text.count("```python")
    names: dict[str, object] = {}
    for block in blocks:
        line = text[: block.start()].count("\n") + 2
        exec(compile("\n" * (line - 1) + block[1], str(page), "exec"), names)
        assert capsys.readouterr().out == (block[2] or ""), f"{page}:{line}"


def test_the_page_has_ten_tasks() -> None:
    tasks = re.findall(r"^## (\d+)\. ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert tasks == [str(number + 1) for number in range(len(tasks))]
    assert len(tasks) >= 10
