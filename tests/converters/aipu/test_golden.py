"""Every field of the vendor's quantized IR and every quantized value of its tensors.

From the float IR and the same ranges.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.aipu_golden import KWS, golden
from tests.support.data import data_path
from tflq.schemas.aipu import Constant, Entry, write_network

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
    "EMBEDDING_LOOKUP",
    "EQUAL_B",
    "EXP",
    "FILL",
    "FLOOR_DIV",
    "FULLY_CONNECTED",
    "GATHER_ND",
    "GLOBAL_AVG",
    "GREATER_EQUAL",
    "GROUP_CONV_B",
    "HARD_SWISH",
    "LAYERNORM",
    "LEAKY_RELU_B",
    "LESS",
    "LOCAL_RESPONSE_NORMALIZATION",
    "LOGICAL_AND",
    "LOGICAL_OR",
    "LOG_SOFTMAX",
    "MAX_POOL_2D",
    "MEAN_B",
    "MINIMUM",
    "MOMENTS",
    "MUL_B",
    "NEG",
    "NON_MAX_SUPPRESSION_B",
    "NON_MAX_SUPPRESSION_V5",
    "ONE_HOT",
    "PAD",
    "PADV2_B",
    "POW",
    "POW2IN_B",
    "PRELU",
    "REDUCE_ANY",
    "REDUCE_MIN",
    "RELU",
    "RELU_0_TO_1",
    "RESHAPE",
    "RESIZE_BILINEAR_AC",
    "RESIZE_NEAREST_HP_B",
    "RESIZE_NEAREST_NEIGHBOR_B",
    "REVERSE_SEQUENCE",
    "ROUND",
    "SCATTER_ND",
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
    "TOPK_V2",
    "TRANSPOSE_CONV",
)
LAYERS = (
    "BATCH_TO_DEPTH",
    "BIAS_ADD",
    "BNLL_LAYER",
    "BOUNDING_BOX",
    "COUNT",
    "COUNT_INTERVAL",
    "CRELU_LAYER",
    "CROP",
    "CTC_GREEDY",
    "CTC_NOMERGE",
    "DATA_STRIDE",
    "DEPTH_TO_SPACE_CRD",
    "DETECTION_OUTPUT",
    "FILTER",
    "IN_TOPK",
    "MAXPOOL_ARGMAX_HW",
    "MAXPOOL_ARGMAX_HWC",
    "MAXPOOL_ARGMAX_NCHW",
    "MAXPOOL_ARGMAX_NHWC",
    "MAX_ROI_POOL",
    "NMS_2CLASS_GAUSSIAN",
    "NMS_2CLASS_HARD",
    "PRELU_LAYER",
    "PROPOSAL",
    "PYRAMID_ROI",
    "REPEAT",
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


# (case, mode, key) -> how many entries hang on the last bit of the vendor's expf; quantized values are equal all the
# same.
EXPF = {("ops/LOG_SOFTMAX", "sym", "lut_exp"): 2}


def _is_expf(ours: Entry, theirs: Entry, allowed: int) -> bool:
    """Whether two float32 tables differ in the last bit of at most `allowed` entries."""
    assert isinstance(ours, Constant)
    assert isinstance(theirs, Constant)
    steps = np.abs(ours.data.view(np.int32).astype(np.int64) - theirs.data.view(np.int32))
    return bool(steps.max() <= 1 and np.count_nonzero(steps) <= allowed)


@pytest.mark.parametrize(("case", "mode"), CASES)
def test_quantized_ir(case: str, mode: str) -> None:
    found, wanted = golden(case, mode).found, golden(case, mode).wanted
    assert list(found.header.items()) == list(wanted.header.items())
    assert [layer.name for layer in found.layers] == [layer.name for layer in wanted.layers]
    for ours, theirs in zip(found.layers, wanted.layers, strict=True):
        assert (ours.type, ours.bottoms, ours.tops) == (theirs.type, theirs.bottoms, theirs.tops)
        assert list(ours.entries) == list(theirs.entries)
        for key, entry in theirs.entries.items():
            if (case, mode, key) in EXPF:
                assert _is_expf(ours.entries[key], entry, EXPF[case, mode, key])
                continue
            assert (type(ours.entries[key]), ours.entries[key]) == (type(entry), entry), (theirs.name, key)


@pytest.mark.parametrize(("case", "mode"), [case for case in CASES if case not in {key[:2] for key in EXPF}])
def test_the_files_are_the_vendors_byte_for_byte(case: str, mode: str) -> None:
    folder = data_path("golden", "aipu", *case.split("/"), mode)
    text, binary = write_network(golden(case, mode).found)
    assert text == next(folder.glob("*_o.txt")).read_text(encoding="utf-8")
    assert binary == next(folder.glob("*_o.bin")).read_bytes()


@pytest.mark.parametrize(("case", "mode"), CASES)
def test_every_tensor(case: str, mode: str) -> None:
    expected = golden(case, mode).tensors
    found = golden(case, mode).run()
    assert found.keys() == expected.keys()
    for name, codes in expected.items():
        np.testing.assert_array_equal(np.broadcast_to(found[name], codes.shape), codes, err_msg=name)


def test_no_case_is_left_out() -> None:
    """WHERE with one input has no quantized IR: the Optimizer does not take it."""
    there = {
        f"{kind}/{path.name}" for kind in ("ops", "layers") for path in data_path("golden", "aipu", kind).iterdir()
    }
    assert there - set(FOLDERS) == {"ops/WHERE"}
