"""Sparse constants: what TFLite's DENSIFY makes of them is what we read."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings
from tests.support.single_op import assert_same_bits
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.converters.tflite.extras import TensorExtra
from tflq.converters.tflite.sparsity import densify
from tflq.errors import FormatError, UnsupportedError
from tflq.graph import DType, GraphBuilder
from tflq.oracle import Oracle
from tflq.schemas import tflite as schema

DENSE, CSR = schema.DimensionType.DENSE, schema.DimensionType.SPARSE_CSR
VECTORS = {np.uint8: schema.Uint8Vector, np.uint16: schema.Uint16Vector, np.int32: schema.Int32Vector}


@dataclass(frozen=True)
class Layout:
    """How to store a dense array: traversal order of its axes, blocks (axis -> size), kinds of the levels."""

    order: tuple[int, ...]
    blocks: dict[int, int]
    kinds: tuple[schema.DimensionType, ...]
    index_type: type


def sparsify(dense: np.ndarray, layout: Layout) -> tuple[schema.SparsityParameters, np.ndarray]:
    """Store a dense array: walk the axes in order, then the blocks; leave out all-zero branches of CSR levels."""
    rank, blocked = dense.ndim, sorted(layout.blocks)
    split = dense.reshape([n for a, s in enumerate(dense.shape) for n in halves(s, layout.blocks.get(a))])
    places = np.cumsum([0, *(1 + (a in layout.blocks) for a in range(rank))])
    axes = [int(places[a]) for a in layout.order] + [int(places[a]) + 1 for a in blocked]
    branches = [split.transpose(axes)]
    levels = []
    for kind in (*layout.kinds[:rank], *[DENSE] * len(blocked)):
        children = [list(enumerate(branch)) for branch in branches]
        if kind is DENSE:
            levels.append(schema.DimensionMetadata(format=DENSE, dense_size=len(branches[0])))
        else:
            children = [[(i, child) for i, child in found if np.any(child)] for found in children]
            levels.append(csr(children, layout.index_type))
        branches = [child for found in children for _, child in found]
    table = schema.SparsityParameters(
        traversal_order=[*layout.order, *range(rank, rank + len(blocked))], block_map=blocked, dim_metadata=levels
    )
    return table, np.array(branches, dense.dtype)


def halves(size: int, block: int | None) -> list[int]:
    return [size] if block is None else [size // block, block]


def csr(children: list[list[tuple[int, np.ndarray]]], index_type: type) -> schema.DimensionMetadata:
    segments = np.cumsum([0, *map(len, children)])
    indices = [i for found in children for i, _ in found]
    vector = VECTORS[index_type]
    return schema.DimensionMetadata(
        format=CSR,
        array_segments=vector(values=segments.astype(index_type)),
        array_indices=vector(values=np.array(indices, index_type)),
    )


@st.composite
def layouts(draw: st.DrawFn) -> tuple[tuple[int, ...], Layout]:
    rank = draw(st.integers(1, 3))
    blocks = {a: draw(st.integers(2, 3)) for a in range(rank) if draw(st.booleans())}
    shape = tuple(draw(st.integers(1, 4)) * blocks.get(a, 1) for a in range(rank))
    order = tuple(draw(st.permutations(range(rank))))
    kinds = tuple(draw(st.sampled_from([DENSE, CSR])) for _ in range(rank))
    return shape, Layout(order, blocks, kinds, draw(st.sampled_from(list(VECTORS))))


def model_with(table: schema.SparsityParameters, values: np.ndarray, dense: np.ndarray) -> bytes:
    b = GraphBuilder()
    constant = b.constant("sparse", dense)
    dtype = DType.of(dense.dtype)
    graph = b.build([b.add("densify", [constant], dense.shape, dtype)])
    extra = TensorExtra(sparsity=table, sparse_values=values.tobytes())
    graph.tensors[constant] = replace(graph.tensors[constant], extra=extra)
    return model_to_bytes(graph)


@kernel_settings
@given(drawn=layouts(), seed=st.integers(0, 999), dtype=st.sampled_from([np.float32, np.int8]))
def test_densify_gives_what_tflite_gives(oracle: Oracle, drawn, seed: int, dtype: type) -> None:
    shape, layout = drawn
    random = np.random.default_rng(seed)
    dense = (random.integers(-9, 9, shape) * (random.random(shape) < 0.4)).astype(dtype)
    dense.reshape(-1)[0] = 5
    table, values = sparsify(dense, layout)
    content = model_with(table, values, dense)
    read = model_from_bytes(content).main
    assert_same_bits(read.tensors[0].data, dense, "what was stored")
    assert values.size == dense.size or len(read.tensors[0].extra.sparse_values) < dense.nbytes
    assert_same_bits(read.tensors[0].data, oracle.run(content, []).outputs[0][0], "the dense value")
    assert model_to_bytes(read) == content


def small() -> tuple[schema.SparsityParameters, np.ndarray, np.ndarray]:
    dense = np.array([[0, 1, 0], [2, 0, 3]], np.int8)
    return (*sparsify(dense, Layout((0, 1), {}, (DENSE, CSR), np.uint8)), dense)


def test_a_replaced_value_is_written_dense() -> None:
    table, values, dense = small()
    model = model_from_bytes(model_with(table, values, dense))
    model.main.tensors[0] = replace(model.main.tensors[0], data=dense + np.int8(1))
    again = model_from_bytes(model_to_bytes(model)).main.tensors[0]
    assert again.extra is None
    assert again.data.tolist() == [[1, 2, 1], [3, 1, 4]]


def test_tensors_that_share_stored_values_go_on_sharing() -> None:
    table, values, dense = small()
    model = model_from_bytes(model_with(table, values, dense))
    model.main.tensors.append(model.main.tensors[0])
    tables = schema.decode_model(model_to_bytes(model), "shared")
    first, *_, last = tables.subgraphs[0].tensors
    assert first.buffer == last.buffer


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"traversal_order": [0, 0]}, r"traversal order \[0, 0\] and 2 levels do not fit the shape \(2, 3\)"),
        ({"traversal_order": [0, 1, 2]}, "do not fit the shape"),
        ({"dim_metadata": []}, "0 levels do not fit"),
        ({"traversal_order": [0, 1, 2], "block_map": [5], "levels": 3}, r"block map \[5\] names axes outside"),
        ({"segments": [0, 1]}, "do not fit 2 parents"),
        ({"segments": [0, 2, 1]}, "do not fit 2 parents"),
        ({"segments": [0, 1, 9]}, "do not fit 2 parents"),
        ({"segments": [1, 1, 3]}, "do not fit 2 parents"),
        ({"segments": [0, 1, 2], "indices": [1, 0]}, "the levels name 2 values, the buffer holds 3"),
        ({"indices": [1, 0, 3]}, r"a stored value lies outside the shape \(2, 3\)"),
        ({"indices": None}, "do not fit 2 parents"),
        ({"dense_size": -1}, "a dense level has size -1"),
        (
            {"dense_size": 2**31 - 1},
            "a dense level has size 2147483647 below 1 parents; the dense value has 6 elements",
        ),
    ],
)
def test_damaged_levels_are_refused(changes: dict, message: str) -> None:
    table, values, dense = small()
    rows, columns = table.dim_metadata
    if "segments" in changes:
        columns.array_segments = schema.Uint8Vector(values=changes["segments"])
    if "indices" in changes:
        columns.array_indices = changes["indices"] and schema.Uint8Vector(values=changes["indices"])
    if "dense_size" in changes:
        rows.dense_size = changes["dense_size"]
    if "levels" in changes:
        table.dim_metadata = [*table.dim_metadata, rows]
    for name in ("traversal_order", "block_map", "dim_metadata"):
        if name in changes:
            setattr(table, name, changes[name])
    with pytest.raises(FormatError, match=f"here: .*({message})"):
        densify(table, values.view(np.uint8), dense.shape, DType.INT8, "here")


def test_an_index_below_zero_is_refused() -> None:
    table, values, dense = small()
    table.dim_metadata[1].array_indices = schema.Int32Vector(values=[1, 0, -1])
    with pytest.raises(FormatError, match="a stored value lies outside the shape"):
        densify(table, values.view(np.uint8), dense.shape, DType.INT8, "here")


def test_a_dense_value_of_any_size_is_refused() -> None:
    table, values, _ = small()
    message = "here: bytes of the dense value: found 4294967296, 1073741824 are allowed; raise the limit with"
    with pytest.raises(UnsupportedError, match=message):
        densify(table, values.view(np.uint8), (1 << 16, 1 << 16), DType.INT8, "here")


@pytest.mark.parametrize("dtype", [DType.INT4, DType.STRING])
def test_types_without_whole_bytes_are_refused(dtype: DType) -> None:
    table, values, dense = small()
    with pytest.raises(FormatError, match=f"here: a sparse constant of {dtype.value}"):
        densify(table, values.view(np.uint8), dense.shape, dtype, "here")


def test_a_level_of_the_wrong_size_is_refused() -> None:
    table, values, _ = small()
    with pytest.raises(FormatError, match="outside the shape"):
        densify(table, values.view(np.uint8), (1, 3), DType.INT8, "here")
