"""tests/newcomer/walk.py is a command of its own, which installs packages; here it is only counted."""

from __future__ import annotations

import os

import pytest

from tests.newcomer import walk


@pytest.mark.skipif(
    "TFLQ_NEWCOMER" not in os.environ, reason="takes minutes and installs: python tests/newcomer/walk.py"
)
def test_a_newcomer_gets_through() -> None:
    assert walk.main([]) == 0


def test_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("TFLQ_DATA", raising=False)
    with pytest.raises(SystemExit):
        walk.main([])
    assert "TFLQ_DATA is not set" in capsys.readouterr().err


def test_every_page_with_commands_is_walked() -> None:
    assert sum(len(walk.examples_of(page)) for page in walk.documented_pages(walk.ROOT)) > 20
