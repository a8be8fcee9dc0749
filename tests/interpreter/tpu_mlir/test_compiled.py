"""Engine(backend="c") gives what numpy gives, in every tensor, on networks of many forms."""

from __future__ import annotations

import pytest

from tests.support.compiled_networks import CHOSEN, differing


@pytest.mark.parametrize("name", CHOSEN)
def test_every_tensor(name: str) -> None:
    assert differing("tpu-mlir", name) == []
