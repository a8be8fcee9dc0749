"""Types that TFLite does not move: refused on both sides."""

from __future__ import annotations

import pytest

from tests.support.nodes import check_refused, fixed, sampled, values
from tflq.graph import DType


@pytest.mark.parametrize(
    ("operator", "dtype"),
    [
        ("pad", DType.FLOAT64), ("pad", DType.UINT16), ("pad", DType.UINT32), ("pad", DType.COMPLEX64),
        ("padv2", DType.UINT64), ("concatenation", DType.FLOAT64), ("concatenation", DType.UINT16),
        ("split", DType.FLOAT16), ("split", DType.BOOL), ("transpose", DType.STRING), ("transpose", DType.COMPLEX128),
    ],
)  # fmt: skip
def test_refused(oracle, operator, dtype):
    x = sampled(values(0, (2, 4, 6), dtype))
    operands = {
        "pad": [x, fixed([[1, 1], [0, 2]])],
        "padv2": [x, fixed([[1, 1], [0, 2]]), fixed(values(1, (1,), dtype))],
        "concatenation": [x, x],
        "split": [fixed(0), x],
        "transpose": [x, fixed([1, 0])],
    }[operator]
    attributes = {"concatenation": {"axis": 0}, "split": {"num_splits": 2}}.get(operator, {})
    results = [dtype] * (2 if operator == "split" else 1)
    check_refused(oracle, operator, operands, results, "the kernel takes", **attributes)
