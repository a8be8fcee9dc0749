"""Element types: their numpy storage, widths and limits."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.graph import DType

NARROW = {DType.INT2: (2, -2, 1), DType.INT4: (4, -8, 7), DType.UINT4: (4, 0, 15)}
WHOLE = [d for d in DType if d.is_integer and d not in NARROW]


@pytest.mark.parametrize("dtype", WHOLE)
def test_limits_are_those_of_numpy(dtype: DType) -> None:
    limits = np.iinfo(dtype.storage)
    assert (dtype.bits, dtype.minimum, dtype.maximum) == (limits.bits, limits.min, limits.max)
    assert dtype.is_signed == (dtype.storage.kind == "i")


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_integers_live_in_bytes(dtype: DType) -> None:
    assert (dtype.bits, dtype.minimum, dtype.maximum) == NARROW[dtype]
    assert dtype.storage.itemsize == 1


def test_kinds() -> None:
    floating = {d for d in DType if d.is_floating}
    assert floating == {d for d in DType if "float" in d.value}
    assert not any(d.is_integer for d in (*floating, DType.BOOL, DType.STRING, DType.COMPLEX64))


@pytest.mark.parametrize("dtype", [d for d in DType if d.storage.kind != "O" and d.value == d.storage.name])
def test_a_numpy_type_names_its_own(dtype: DType) -> None:
    assert DType.of(dtype.storage) is dtype


def test_objects_are_strings_without_a_width() -> None:
    assert DType.of(np.dtype(object)) is DType.STRING
    assert {d.bits for d in (DType.STRING, DType.RESOURCE, DType.VARIANT)} == {0}
