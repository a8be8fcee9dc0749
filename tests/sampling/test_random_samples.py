"""Random samples are legal, and the same for the same number however they are taken."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.errors import InputError, OptionError
from tflq.graph import Affine, DType, Graph, GraphBuilder
from tflq.sampling import GivenSamples, RandomSamples, legal_values
from tflq.sampling.samples import Portion

SCALE = Affine.per_tensor(np.float32(0.5))


def one_input(dtype: DType, shape: tuple[int, ...] = (1, 400), quantization: Affine | None = None) -> Graph:
    builder = GraphBuilder()
    x = builder.input("x", shape, dtype, quantization)
    return builder.build([builder.add("abs", [x], shape, dtype, quantization)])


def gather(indices: tuple[int, ...], dtype: DType = DType.INT32, operator: str = "gather", **attributes: int) -> Graph:
    builder = GraphBuilder()
    table = builder.constant("table", np.zeros((5, 7), np.float32))
    x = builder.input("x", indices, dtype)
    return builder.build([builder.add(operator, [table, x], (3,), DType.FLOAT32, **attributes)])


def values(graph: Graph, count: int = 50) -> np.ndarray:
    (array,) = RandomSamples(graph, count, seed=3).take(0, count)
    return array


def test_chunks_do_not_matter() -> None:
    samples = RandomSamples(one_input(DType.FLOAT32), 9, seed=1)
    (whole,) = samples.take(0, 9)
    parts = np.concatenate([samples.take(i, min(i + 2, 9))[0] for i in range(0, 9, 2)])
    assert whole.tobytes() == parts.tobytes()
    assert whole.tobytes() != RandomSamples(one_input(DType.FLOAT32), 9, seed=2).take(0, 9)[0].tobytes()


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [(DType.INT8, -128, 127), (DType.UINT8, 0, 255), (DType.INT4, -8, 7), (DType.INT2, -2, 1), (DType.UINT4, 0, 15)],
)
def test_quantized_integers_use_their_whole_range(dtype: DType, low: int, high: int) -> None:
    found = values(one_input(dtype, quantization=SCALE))
    assert (found.min(), found.max(), found.dtype) == (low, high, dtype.storage)


def test_wide_plain_integers_stay_small_and_others_keep_their_type() -> None:
    assert np.abs(values(one_input(DType.INT64))).max() <= 1000
    assert values(one_input(DType.UINT32)).dtype == np.uint32
    assert set(values(one_input(DType.BOOL)).ravel()) == {False, True}
    assert values(one_input(DType.FLOAT16)).dtype == np.float16
    assert values(one_input(DType.COMPLEX64)).dtype == np.complex64
    found = values(one_input(DType.FLOAT32))
    assert abs(found.mean()) < 0.05
    assert abs(found.std() - 1) < 0.05


def test_indices_lie_within_what_they_index() -> None:
    assert set(values(gather((1, 50), axis=1)).ravel()) == set(range(7))
    assert set(values(gather((1, 50), DType.INT64, axis=-2)).ravel()) == set(range(5))
    assert set(values(gather((1, 50), axis=0)).ravel()) == set(range(5))
    found = values(gather((30, 2), operator="gather_nd"))
    assert found.reshape(-1, 2).max(axis=0).tolist() == [4, 6]


def test_indices_are_followed_through_a_reshape_and_a_cast() -> None:
    builder = GraphBuilder()
    table = builder.constant("table", np.zeros((5, 7), np.float32))
    x = builder.input("x", (1, 50), DType.INT64)
    cast = builder.add("cast", [x], (1, 50), DType.INT32)
    flat = builder.add("reshape", [cast], (50,), DType.INT32, new_shape=(50,))
    graph = builder.build([builder.add("embedding_lookup", [flat, table], (50, 7), DType.FLOAT32)])
    assert set(values(graph).ravel()) == set(range(5))
    assert "table of 5 rows" in legal_values(graph, graph.inputs[0]).why


def test_shapes_are_stated_not_drawn() -> None:
    builder = GraphBuilder()
    x = builder.input("x", (2, 6), DType.FLOAT32)
    shape = builder.input("shape", (3,), DType.INT32)
    graph = builder.build([builder.add("reshape", [x, shape], (3, 2, 2), DType.FLOAT32)])
    assert RandomSamples(graph, 2).take(0, 2)[1].tolist() == [[3, 2, 2], [3, 2, 2]]


def test_strings_are_refused() -> None:
    with pytest.raises(InputError, match="input 'x' has type string, which has no random values; pass samples"):
        RandomSamples(one_input(DType.STRING), 1)


@pytest.mark.parametrize(("count", "seed"), [(0, 0), (1, -1)])
def test_counts_and_seeds_are_checked(count: int, seed: int) -> None:
    with pytest.raises(OptionError):
        RandomSamples(one_input(DType.INT8), count, seed)


def test_a_portion_holds_the_samples_of_its_range() -> None:
    data = np.arange(7 * 400, dtype=np.float32).reshape(7, 1, 400)
    for samples, most in ((GivenSamples([data]), 7), (RandomSamples(one_input(DType.FLOAT32), 7, seed=1), 7)):
        (whole,) = samples.take(0, most)
        for start, stop in ((0, 2), (3, 5), (5, 9)):
            (part,) = Portion.from_samples(samples, start, stop).arrays()
            assert part.tolist() == whole[start : min(stop, most)].tolist()


@pytest.mark.every
@pytest.mark.parametrize(
    ("dtype", "quantization", "low", "high"),
    [(DType.INT16, None, -32768, 32767), (DType.INT32, SCALE, -(2**31), 2**31 - 1), (DType.INT32, None, -1000, 1000)],
)
def test_ranges_of_integers(dtype: DType, quantization: Affine | None, low: int, high: int) -> None:
    found = values(one_input(dtype, quantization=quantization))
    assert low <= found.min() < low * 0.99
    assert high * 0.99 < found.max() <= high
