"""Small graphs that TPU-MLIR lowered and simulated: cases/tpu_mlir_more, every tensor, in both modes."""

from __future__ import annotations

import pytest

from tests.support.tpu_mlir_cases import case_names, compared


@pytest.mark.parametrize("mode", ["sym", "asym"])
@pytest.mark.parametrize("name", case_names())
def test_every_tensor_of_a_case(name: str, mode: str) -> None:
    found = compared(name, mode)
    assert found.problems == []
    assert found.compared
