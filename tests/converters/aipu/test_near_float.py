"""Networks that tflq writes anew for the AIPU compute nearly what the model does (tests/support/float_networks.py)."""

from __future__ import annotations

import pytest

from tests.support.float_networks import NETWORKS, share_lost
from tflq.converters.targets import find_target

SCHEMES = {
    "plain": [],
    "asymmetric": ["activations=asymmetric", "weights=per_channel"],
    "16 bits": ["activation_bits=16", "weight_bits=16"],
}
NAMES = [name for name in NETWORKS if not name.startswith("normalized, ")]
"""x - mean of x has two operands of one type, for which SUB forgets its own scale (docs/rules/aipu/operators.md)."""

LOSSY = {("softsign", "16 bits"), ("normalized by Keras, negated False", "16 bits")}
"""Div's table has 256 entries at 16 bits, too (docs/rules/aipu/operators.md), and LayerNorm loses more there than at 8
bits."""


@pytest.mark.parametrize(("name", "scheme"), [(n, s) for n in NAMES for s in SCHEMES if (n, s) not in LOSSY])
def test_near_what_the_model_computes(name: str, scheme: str) -> None:
    assert share_lost(find_target("aipu"), name, SCHEMES[scheme]) <= 0.025
