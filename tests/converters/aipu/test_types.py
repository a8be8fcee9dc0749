"""The narrowest types of whole numbers and slopes; what a linear layer hands on, and what a pair is read from."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from tflq.converters.aipu import AIPU
from tflq.converters.aipu.emit import float_network_of
from tflq.converters.aipu.operators.linear import changed_by
from tflq.converters.aipu.operators.pairs import read_pair
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.quantize import _whole_type
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.calibration.ranges import range_of
from tflq.converters.settings import parse_settings
from tflq.graph import Affine, DType, GraphBuilder, Tensor
from tflq.interpreter import lower
from tflq.interpreter.kernels.aipu.activation import LEAKY, Fused
from tflq.interpreter.kernels.aipu.multiplier import Multiplier

if TYPE_CHECKING:
    from tflq.converters.aipu.emitted import FromFile

RANGE = "layer_top_range"
BYTE = Tensor("x", (1,), DType.INT8, Affine.per_tensor(np.float32(1), 0, 8))


@pytest.mark.parametrize(
    ("low", "high", "signed", "bits"),
    [
        (-128, 127, True, 8),
        (-128, 128, True, 16),
        (-129, 127, True, 16),
        (0, 255, False, 8),
        (0, 256, False, 16),
        (-32768, 32767, True, 16),
        (-32768, 32768, True, 32),
        (0, 65536, False, 32),
    ],
)
def test_whole_numbers_have_the_bits_that_hold_their_range(low: int, high: int, signed: bool, bits: int) -> None:
    found = _whole_type(Tensor("y", (1,), DType.FLOAT32, range=range_of(low, high)), [BYTE], signed)
    assert (found.bits, found.signed, float(found.scale[0]), int(found.zero_point[0])) == (bits, signed, 1.0, 0)


@pytest.mark.parametrize("slope", [0, 255, 256, -1, -128, -129, 65535, 65536, -32768, -32769])
def test_a_slope_has_the_narrowest_type(slope: int) -> None:
    keys = changed_by(Fused(LEAKY, slope=slope))
    kinds = ("uint8", "int8", "uint16", "int16", "uint32", "int32")
    narrowest = next(k for k in kinds if np.iinfo(k).min <= slope <= np.iinfo(k).max)
    assert keys == {"negative_slope_type": narrowest, "negative_slope_value": slope}


def test_a_product_is_handed_to_compiled_code() -> None:
    b = GraphBuilder("product")
    x = b.input("x", (1, 4), DType.FLOAT32)
    weights = b.constant("w", np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
    y = b.add("fully_connected", (x, weights), (1, 3), DType.FLOAT32)
    graph = b.build((y,))
    for t in (x, y):
        graph.tensors[t] = replace(graph.tensors[t], range=range_of(-3, 3))
    quantized = AIPU.quantize(graph, parse_settings(AIPU.settings))
    linear = lower(quantized, "aipu").nodes[-1].params.linear
    assert linear.weights[:, 0, 0].tolist() == np.rint(np.linspace(-127, 127, 12)).reshape(3, 4).tolist()


@pytest.mark.parametrize(("numbers", "read"), [(None, False), ([5], False), ([5, 2], False), ([5, 2, 3], True)])
def test_a_pair_is_read_where_a_file_states_three_numbers(numbers: list[int] | None, read: bool) -> None:
    """M, k0 and k1; other files have them decided anew."""
    found = None if numbers is None else Multiplier(np.array(numbers), np.full(len(numbers), 4))
    params = read_pair(cast("FromFile", SimpleNamespace(multiplier=lambda: found)))
    assert set(params) == ({"rescale", "factors"} if read else set())


@pytest.mark.parametrize(("least", "dtype", "scale"), [(-0.25, DType.INT8, 12.75), (0.25, DType.UINT8, 25.5)])
@pytest.mark.parametrize("symmetric", [True, False])
def test_an_input_that_was_below_0_is_signed(least: float, dtype: DType, scale: float, symmetric: bool) -> None:
    """Though the average of its least values is above 0; the float IR begins below 0, which Compass' in_ir reads."""
    builder = GraphBuilder("m")
    x = builder.input("x", (1, 2), DType.FLOAT32)
    graph = builder.build((builder.add("abs", (x,), (1, 2), DType.FLOAT32),))
    samples = np.array([[[least, 10]], [[3, 10]], [[3, 10]]], np.float32)
    ranged = calibrate(graph, [samples], StatisticsOptions("mean", 1))
    settings = parse_settings(AIPU.settings, [f"activations={'symmetric' if symmetric else 'asymmetric'}"])
    quantized = AIPU.quantize(ranged, settings)
    tensor = quantized.tensors[quantized.inputs[0]]
    assert tensor.dtype is dtype
    wanted = scale if symmetric or dtype is DType.UINT8 else 25.5
    assert float(np.float32(1 / tensor.affine.scale[0])) == wanted
    assert isinstance(quantized.extra, Origin)
    assert quantized.extra.floats is not None
    ((low, _),) = cast(
        "tuple[tuple[float, float]]", float_network_of(quantized.extra.floats, "m").layers[0].entries[RANGE]
    )
    assert (low < 0) == (dtype is DType.INT8)
