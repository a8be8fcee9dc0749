"""`is_same` compares types, fields and bits."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.arrays import is_same
from tflq.graph import Attributes, DType, Node, Tensor

NAN = np.array([np.nan], np.float32)
OTHER_NAN = (NAN.view(np.uint32) + 1).view(np.float32)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ((1, 2), [1, 2]),
        ((1, 2), (1, 2, 3)),
        ({"a": 1}, {"b": 1}),
        (np.zeros(2, np.int8), np.zeros(2, np.uint8)),
        (np.zeros((1, 2)), np.zeros((2, 1))),
        (np.array([0.0]), np.array([-0.0])),
        (NAN, OTHER_NAN),
        (np.array([b"a"], object), np.array([b"b"], object)),
        (Tensor("a", (1,), DType.INT8), Tensor("a", (1,), DType.UINT8)),
        (Node("relu", (0,), (1,)), Node("relu", (0,), (1,), Attributes({"a": 1}))),
    ],
)
def test_different(one: object, other: object) -> None:
    assert not is_same(one, other)
    assert is_same(one, one)


def test_same() -> None:
    assert is_same(float("nan"), float("nan"))
    assert is_same(NAN, NAN.copy())
    assert is_same({"a": (1, np.ones(2))}, {"a": (1, np.ones(2))})
    assert is_same(np.array([b"a"], object), np.array([b"a"], object))
    assert Tensor("a", (1,), DType.INT8, data=np.ones(1, np.int8)) == Tensor(
        "a", (1,), DType.INT8, data=np.ones(1, np.int8)
    )
