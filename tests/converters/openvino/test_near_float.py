"""Networks that tflq writes anew for OpenVINO compute nearly what the model does (tests/support/float_networks.py)."""

from __future__ import annotations

import pytest

from tests.support.float_networks import NETWORKS, share_lost
from tflq.converters.targets import find_target


@pytest.mark.parametrize("name", NETWORKS)
def test_near_what_the_model_computes(name: str) -> None:
    assert share_lost(find_target("openvino"), name) <= 0.025
