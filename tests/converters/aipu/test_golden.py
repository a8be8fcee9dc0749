"""Every field of the vendor's quantised IR and every code of its tensors, from the float IR and the same ranges."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.aipu_golden import KWS, golden

OPS = (
    "ABS",
    "ADD_N",
    "ARG_MIN",
    "AVERAGE_POOL_2D",
    "AVERAGE_POOL_2D_VALID_B",
    "BATCHNORM_MULADD",
    "BATCH_MATMUL_B",
    "BATCH_TO_SPACE_ND",
    "BROADCAST_TO",
    "CAST_I2F",
    "CLIP",
    "CONCATENATION_B",
    "CONV_2D",
    "CONV_2D_NOACT",
    "COS",
    "CUMSUM",
    "DEPTHWISE_MULT2",
    "DEPTH_TO_SPACE_B",
    "DIV",
    "EQUAL_B",
    "EXP",
    "FILL",
    "FLOOR_DIV",
    "FULLY_CONNECTED",
    "GLOBAL_AVG",
    "GREATER_EQUAL",
    "GROUP_CONV_B",
    "HARD_SWISH",
    "LAYERNORM",
    "LEAKY_RELU_B",
    "LESS",
    "LOGICAL_AND",
    "LOGICAL_OR",
    "MAX_POOL_2D",
    "MEAN_B",
    "MINIMUM",
    "MOMENTS",
    "MUL_B",
    "NEG",
    "PAD",
    "PADV2_B",
    "PRELU",
    "REDUCE_MIN",
    "RELU",
    "RELU_0_TO_1",
    "RESHAPE",
    "RESIZE_NEAREST_HP_B",
    "RESIZE_NEAREST_NEIGHBOR_B",
    "ROUND",
    "SELECT_V2",
    "SIGN",
    "SIN",
    "SOFTMAX",
    "SOFTSIGN",
    "SPACE_TO_BATCH_ND_B",
    "SPACE_TO_DEPTH",
    "SPLIT_V",
    "SQUARE",
    "SQUEEZE",
    "SUB",
    "SUM_B",
    "TANH",
)
LAYERS = (
    "BATCH_TO_DEPTH",
    "BNLL_LAYER",
    "BOUNDING_BOX",
    "CROP",
    "DATA_STRIDE",
    "DEPTH_TO_SPACE_CRD",
    "DETECTION_OUTPUT",
    "MAX_ROI_POOL",
    "NMS_2CLASS_GAUSSIAN",
    "NMS_2CLASS_HARD",
    "PROPOSAL",
    "PYRAMID_ROI",
    "RESIZE_NN_ALIGN_CORNERS",
    "RESIZE_NN_ASYMMETRIC",
    "RESIZE_NN_HALF_PIXEL",
    "RESIZE_NN_PYTORCH_HALF_PIXEL",
    "RESIZE_NN_TF_HALF_PIXEL_FOR_NN",
    "ROI_ALIGN_AVG",
    "ROI_ALIGN_AVG_HP",
    "ROI_ALIGN_AVG_S0",
    "ROI_ALIGN_MAX",
    "SELU_LAYER",
    "SPACE_TO_BATCH_PAD",
)
FOLDERS = [f"ops/{name}" for name in OPS] + [f"layers/{name}" for name in LAYERS]
CASES = [(KWS, mode) for mode in ("sym_pt", "asym_pc")] + [(f, mode) for f in FOLDERS for mode in ("sym", "asym")]


@pytest.mark.parametrize(("case", "mode"), CASES)
def test_quantised_ir(case: str, mode: str) -> None:
    found, wanted = golden(case, mode).found, golden(case, mode).wanted
    assert list(found.header.items()) == list(wanted.header.items())
    assert [layer.name for layer in found.layers] == [layer.name for layer in wanted.layers]
    for ours, theirs in zip(found.layers, wanted.layers, strict=True):
        assert (ours.type, ours.bottoms, ours.tops) == (theirs.type, theirs.bottoms, theirs.tops)
        assert list(ours.entries) == list(theirs.entries)
        for key, entry in theirs.entries.items():
            assert (type(ours.entries[key]), ours.entries[key]) == (type(entry), entry), (theirs.name, key)


@pytest.mark.parametrize(("case", "mode"), CASES)
def test_every_tensor(case: str, mode: str) -> None:
    expected = golden(case, mode).tensors
    found = golden(case, mode).run()
    assert found.keys() == expected.keys()
    for name, codes in expected.items():
        np.testing.assert_array_equal(np.broadcast_to(found[name], codes.shape), codes, err_msg=name)
