"""Calibration of graphs: against numpy on the full data, whatever the cut; refusals name tensor and sample."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tflq.converters.calibration import StatisticsOptions, calibrate, ranges_from_quantization, samples_of
from tflq.errors import InputError, OptionError
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder, Range

DATA = np.random.default_rng(5).normal(0, 3, (37, 1, 6)).astype(np.float32)


def float_graph() -> Graph:
    b = GraphBuilder()
    x = b.input("x", (1, 6), DType.FLOAT32)
    c = b.constant("c", np.array([[1, 2, 3, 4, 5, 6]], np.float32))
    y = b.add("mul", [x, c], (1, 6), DType.FLOAT32, fused_activation_function="none")
    z = b.add("relu", [y], (1, 6), DType.FLOAT32)
    i = b.add("add", [c, c], (1, 6), DType.FLOAT32, fused_activation_function="none")
    return b.build([z, i])


def quantized_graph() -> Graph:
    b = GraphBuilder()
    q = Affine.per_tensor(np.float32(0.25), 3)
    x = b.input("x", (1, 6), DType.INT8, q)
    y = b.add("relu", [x], (1, 6), DType.INT8, Affine.per_tensor(np.float32(0.5), -128))
    z = b.add("dequantize", [y], (1, 6), DType.FLOAT32)
    return b.build([z])


def bounds(graph: Graph, t: int) -> tuple[float, float]:
    found = graph.tensors[t].range
    assert found is not None
    assert found.minimum.dtype == found.maximum.dtype == np.float32
    return float(found.minimum[0]), float(found.maximum[0])


def chunks(sizes: list[int]) -> Iterator[list[Array]]:
    start = 0
    for size in sizes:
        yield [DATA[start : start + size]]
        start += size


def test_extrema_are_those_of_the_full_data() -> None:
    found = calibrate(float_graph(), [DATA])
    product = DATA * np.arange(1, 7, dtype=np.float32)
    assert bounds(found, 0) == (DATA.min(), DATA.max())
    assert bounds(found, 2) == (product.min(), product.max())
    assert bounds(found, 3) == (0, product.max())
    assert bounds(found, 4) == (0, 12)  # folded: known without a sample
    assert found.tensors[1].range is None


@pytest.mark.parametrize("strategy", ["mean", "3std", "compass-kld", "mse"])
def test_the_cut_into_chunks_does_not_matter(strategy: str) -> None:
    options = StatisticsOptions(strategy, batch_size=5)
    whole = calibrate(float_graph(), [DATA], options)
    for sizes in ([37], [1] * 37, [3, 20, 14], [36, 1]):
        assert calibrate(float_graph(), chunks(sizes), options).tensors == whole.tensors


@pytest.mark.parametrize("strategy", ["3std", "kld", "compass-kld"])
def test_memory_does_not_grow_with_the_samples(strategy: str) -> None:
    """Ten batches of 96 kB more: one that is kept is more than the tolerance."""
    peaks = [peak_memory(strategy, batches) for batches in (2, 2, 12)]  # the first run pays for imports
    assert peaks[2] <= peaks[1] + 50_000


def peak_memory(strategy: str, batches: int) -> int:
    """Return the peak of traced memory in bytes while a graph is calibrated on batches of 4000 samples."""
    rng = np.random.default_rng(0)
    data = ([rng.normal(0, i + 1, (4000, 1, 6)).astype(np.float32)] for i in range(batches))
    tracemalloc.start()
    try:
        calibrate(float_graph(), data, StatisticsOptions(strategy, batch_size=4000, bins=256))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_batches_matter_for_the_moving_average() -> None:
    assert bounds(calibrate(float_graph(), [DATA], StatisticsOptions("mean", batch_size=37)), 0) == (
        DATA.min(),
        DATA.max(),
    )
    low = np.float32(DATA[0].min())
    for x in DATA[1:]:
        low = np.float32(0.9) * low + np.float32(0.1) * x.min()
    assert bounds(calibrate(float_graph(), [DATA], StatisticsOptions("mean", batch_size=1)), 0)[0] == low


def test_a_quantized_graph_runs_in_float() -> None:
    codes = np.arange(-128, 112, dtype=np.int8).reshape(40, 1, 6)
    found = calibrate(quantized_graph(), [codes])
    assert bounds(found, 0) == (-131 * 0.25, 108 * 0.25)
    assert bounds(found, 1) == (0, 27)
    assert bounds(found, 2) == (0, 27)  # of the DEQUANTIZE that the float view leaves out
    assert found.tensors[0].dtype is DType.INT8


def test_ranges_from_quantization() -> None:
    graph = quantized_graph()
    found = ranges_from_quantization(graph)
    assert bounds(found, 0) == (-131 * 0.25, 124 * 0.25)
    assert bounds(found, 1) == (0, 127.5)
    assert bounds(found, 2) == (0, 127.5), "a DEQUANTIZE hands its range on to the float border"
    stated = graph.copy()
    stated.tensors[0] = replace(graph.tensors[0], range=Range(np.array([-1.0]), np.array([0.1])))
    assert bounds(ranges_from_quantization(stated), 0) == (-1, np.float32(0.1))


def test_samples_are_kept_when_asked() -> None:
    found = samples_of(calibrate(float_graph(), [DATA], StatisticsOptions(keep_samples=12, batch_size=5)))
    assert found is not None
    assert found.count == 37
    assert np.array_equal(found.inputs[0], DATA[:12])


def test_shuffling_changes_the_batches_and_nothing_else() -> None:
    plain = calibrate(float_graph(), [DATA], StatisticsOptions("mean", batch_size=5))
    shuffled = [calibrate(float_graph(), [DATA], StatisticsOptions("mean", batch_size=5, shuffle_seed=1)) for _ in "ab"]
    assert shuffled[0].tensors == shuffled[1].tensors != plain.tensors
    with pytest.raises(OptionError, match="only arrays can be shuffled"):
        calibrate(float_graph(), chunks([37]), StatisticsOptions(shuffle_seed=1))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_names_tensor_and_sample(value: float) -> None:
    data = DATA.copy()
    data[23, 0, 4] = value
    with pytest.raises(InputError, match=rf"tensor 'x' is {value} in sample 23; every value must be finite"):
        calibrate(float_graph(), [data], StatisticsOptions(batch_size=10))


def test_overflow_inside_the_network_names_tensor_and_sample() -> None:
    data = DATA.copy()
    data[12, 0, 5] = 3e38
    b = GraphBuilder()
    x = b.input("x", (1, 6), DType.FLOAT32)
    y = b.add("squared_difference", [x, b.constant("c", np.ones((1, 6), np.float32))], (1, 6), DType.FLOAT32)
    with pytest.raises(InputError, match=r"tensor 'squared_difference_0' is inf in sample 12"):
        calibrate(b.build([y]), [data])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([DATA[:0]], "no sample"),
        ([DATA, DATA], "2 arrays were given, the model has 1 inputs"),
        ([DATA[..., :5]], "has shape"),
        ([DATA.astype(np.float64)], "the array is float64"),
        (iter(()), "no sample"),
    ],
)
def test_data_that_do_not_fit(data: list[Array], message: str) -> None:
    with pytest.raises(InputError, match=message):
        calibrate(float_graph(), data)
