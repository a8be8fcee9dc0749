"""Networks that tflq writes anew for NNIE compute nearly what the model does (tests/support/float_networks.py)."""

from __future__ import annotations

import pytest

from tests.support.float_networks import NETWORKS, share_lost
from tflq.converters.targets import find_target

NOT_TAKEN = ("gelu", "packed", "mirrored", "behind transpose", "sum of four", "rows")


@pytest.mark.parametrize("name", [name for name in NETWORKS if not any(word in name for word in NOT_TAKEN)])
def test_near_what_the_model_computes(name: str) -> None:
    """Quantized values are powers of 2^(1/16): a step is 4.4 %."""
    assert share_lost(find_target("nnie"), name) <= 0.1
