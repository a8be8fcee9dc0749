"""Tests of one function of a text that is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest


def refuses(function: Callable[[str], object], error: type[Exception], cases: Mapping[str, str]) -> Callable[..., None]:
    """Return a test: each text makes the function raise the error, whose message matches what stands behind it."""

    @pytest.mark.parametrize(("text", "message"), cases.items())
    def test(text: str, message: str) -> None:
        with pytest.raises(error, match=message):
            function(text)

    return test


def damaged(*cases: tuple[str, str, str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrize a test by what is replaced in a text, by what, and what the message says."""
    return pytest.mark.parametrize(("old", "new", "message"), cases)
