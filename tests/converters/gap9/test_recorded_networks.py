"""Drawn networks as the live NNTool has them: types, constants, tensors and AutoTiler's calls (gap9_recorded.py)."""

from __future__ import annotations

import pytest

from tests.support.gap9_recorded import (
    DIFFERS,
    REFUSED_HERE,
    REFUSED_THERE,
    cause_of,
    converted,
    problems,
    recorded,
    table_of_causes,
)
from tests.support.tracked import ROOT
from tflq.errors import TflqError


@pytest.mark.parametrize("name", recorded()["networks"])
def test_equal(name: str) -> None:
    assert problems(name, "nntool") == []


@pytest.mark.parametrize("name", recorded()["refused"])
def test_refused_by_both(name: str) -> None:
    with pytest.raises(TflqError):
        converted(name, "nntool")


@pytest.mark.parametrize("name", recorded()["differ"])
def test_what_is_not_equal_has_a_cause(name: str) -> None:
    """What tflq alone refuses is refused still; else scripts/peer nntool-recorded --write is due."""
    why = recorded()["differ"][name]
    assert why["kind"] in (REFUSED_HERE, REFUSED_THERE, DIFFERS)
    assert cause_of(why["kind"], why["first"])
    if why["kind"] == REFUSED_HERE:
        with pytest.raises(TflqError):
            converted(name, "nntool")
    else:
        assert converted(name, "nntool").nodes


def test_the_page_counts_the_causes() -> None:
    page = (ROOT / "docs" / "internals" / "evidence" / "gap9.md").read_text(encoding="utf-8")
    assert "\n".join(table_of_causes(recorded()["differ"])) in page
