"""Networks that tflq writes anew for GAP9 compute nearly what the model does (tests/support/float_networks.py)."""

from __future__ import annotations

import pytest

from tests.support.float_networks import NETWORKS, share_lost
from tflq.converters.targets import find_target

NOT_TAKEN = (
    "elu", "gelu", "square", "sum of four", "power of two", "depth_to_space", "normalised", "packed", "mirrored",
    "length 1", "slope", "relu_0_to_1",
)  # fmt: skip
NAMES = [name for name in NETWORKS if not any(f" {word}" in f" {name}" for word in NOT_TAKEN)]


@pytest.mark.parametrize("engine", ["gap9-ne16", "gap9-sq8"])
@pytest.mark.parametrize("name", NAMES)
def test_near_what_the_model_computes(name: str, engine: str) -> None:
    """A concatenation's inputs share a scale of powers of two, which takes a bit."""
    assert share_lost(find_target(engine), name) <= 0.05
