"""Small graphs that TPU-MLIR lowered and simulated: a share of cases/tpu_mlir_more, every tensor, in both modes.

All of them: python -m tests.support.tpu_mlir_cases
"""

from __future__ import annotations

import pytest

from tests.support.tpu_mlir_cases import compared

SHARE = [
    "add_const_full", "add_ratio_above_64", "add_scalar", "avgpool_relu", "clip_0_1", "concat_two", "conv_mul_scalar",
    "abs", "conv_silu", "deconv_relu", "div_scalar", "elu1", "log", "max_scalar", "mul_relu", "muladd_relu", "neg",
    "prelu_neg",
    "range_all_negative", "reducemean_1", "relu_alone", "relu_shared_input", "slice_step2", "softmax3d", "sub_const_c",
    "sub_two_u8", "conv_dilated", "conv_group2", "gather_c", "hardswish", "resize_bilinear_hp", "split_conv_concat",
    "transpose_conv",
]  # fmt: skip


@pytest.mark.parametrize("mode", ["sym", "asym"])
@pytest.mark.parametrize("name", SHARE)
def test_every_tensor_of_a_case(name: str, mode: str) -> None:
    found = compared(name, mode)
    assert found.problems == []
    assert found.compared
