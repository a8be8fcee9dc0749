"""Steps between two encodings of one number, and quantized values carried from one to the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.tracked import ROOT
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.tflite import model_from_bytes, read_model
from tflq.emit.written import compare_emitted, recode, steps_between
from tflq.graph import Affine, DType, Tensor
from tflq.oracle import Oracle
from tflq.parallel.executions import as_is, for_target
from tflq.sampling import RandomSamples

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
ALL_INT8 = np.arange(-128, 128, dtype=np.int8)[None]


@pytest.mark.parametrize("name", ["gap9-ne16", "gap9-sq8"])
def test_the_tensors_of_both_graphs_are_compared(name: str, oracle: Oracle) -> None:
    model = read_model(DIGITS)
    target = find_target(name)
    execution = for_target(model.main, target, parse_settings(target.settings))
    (content,) = (data for file, data in target.emit(execution.graph, model).items() if file.endswith(".tflite"))
    found = compare_emitted(execution, content, RandomSamples(model.main, 6), oracle)
    assert (found.samples, found.output.elements) == (6, 60)
    assert len(found.tensors) == len(model_from_bytes(content).main.nodes)
    assert all(steps.elements == 6 * execution.graph.tensors[t].size for t, steps in found.tensors.items())
    in_parts = compare_emitted(replace(execution, samples_at_a_time=4), content, RandomSamples(model.main, 6), oracle)
    assert in_parts == found


def test_a_target_that_is_tflite_itself_differs_nowhere(oracle: Oracle) -> None:
    model = read_model(DIGITS)
    found = compare_emitted(as_is(model), DIGITS.read_bytes(), RandomSamples(model.main, 6), oracle)
    assert len(found.tensors) == len(model.main.nodes)
    assert all(steps.differing == 0 for steps in found.tensors.values())


def tensor(dtype: DType, scale: float | np.float32 | None, zero_point: int = 0, bits: int = 8) -> Tensor:
    quantization = None if scale is None else Affine.per_tensor(scale, zero_point, bits, dtype.is_signed)
    return Tensor("t", (256,), dtype, quantization)


def test_equal_scales_only_shift() -> None:
    unsigned = tensor(DType.UINT8, 0.1, 128)
    signed = tensor(DType.INT8, np.float32(0.1), 0)
    found = recode(ALL_INT8, signed, unsigned)
    assert found.dtype == np.uint8
    assert found[0].tolist() == list(range(256))
    assert steps_between(ALL_INT8, signed, found, unsigned).max() == 0


def test_steps_are_whole_where_scales_are_equal() -> None:
    a, b = tensor(DType.INT8, 1 / 3), tensor(DType.INT8, np.float32(1 / 3), 5)
    other = np.clip(ALL_INT8.astype(int) + 7, -128, 127).astype(np.int8)
    steps = steps_between(ALL_INT8, a, other, b)
    assert steps[0, :100].tolist() == [2.0] * 100


def test_the_wider_scale_counts() -> None:
    fine = tensor(DType.INT16, 2.0**-15, bits=16)
    coarse = tensor(DType.INT8, 2.0**-7)
    a = np.array([[256, 300]], np.int16)
    b = np.array([[1, 1]], np.int8)
    assert steps_between(a, fine, b, coarse).tolist() == [[0.0, 44 / 256]]


def test_recode_clips_and_goes_to_float() -> None:
    assert recode(ALL_INT8, tensor(DType.INT8, 1.0), tensor(DType.UINT8, 1.0))[0, :3].tolist() == [0, 0, 0]
    assert recode(ALL_INT8, tensor(DType.INT8, 0.5), tensor(DType.FLOAT32, None))[0, 0] == np.float32(-64)


@pytest.mark.parametrize("scale", [1e-6, 0.0235294, 0.5847029089927673, 1e5])
def test_rounding_a_scale_to_float32_changes_no_code(scale: float) -> None:
    exact, rounded = tensor(DType.INT8, scale, 3), tensor(DType.INT8, np.float32(scale), 3)
    assert (recode(ALL_INT8, exact, rounded) == ALL_INT8).all()
