"""Drawn networks as the live NNTool has them: types, constants, tensors and AutoTiler's calls (gap9_recorded.py)."""

from __future__ import annotations

import pytest

from tests.support.gap9_recorded import converted, problems, recorded
from tflq.errors import TflqError


@pytest.mark.parametrize("name", recorded()["networks"])
def test_equal(name: str) -> None:
    assert problems(name, "nntool") == []


@pytest.mark.parametrize("name", recorded()["refused"])
def test_refused_by_both(name: str) -> None:
    with pytest.raises(TflqError):
        converted(name, "nntool")
