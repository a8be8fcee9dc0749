"""Shapes that files state are not believed, known values are folded; and what else minimal models ask of TFLite."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_files, data_path
from tflq.converters.tflite import read_model
from tflq.errors import TflqError
from tflq.graph import Array, DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine
from tflq.interpreter.execution.settle import resize, settle

FOLDER = ("cases", "dynamic_shapes")
MODELS = data_files(*FOLDER)
REFUSED_HERE = {
    "rfft_2_1": "TFLite's numbers for transforms of width 1 are none of the input's (docs/rules/tflite/index.md)",
}


def run(model: Model, inputs: list[Array]) -> list[Array]:
    found = Engine(model.main, graphs=model.graphs).run([x[None] for x in inputs])
    return [found[t][0] for t in model.main.outputs]


def array_of(described: dict[str, object]) -> Array:
    return np.array(described["values"], described["dtype"]).reshape(described["shape"])


@pytest.mark.parametrize("path", MODELS or [None], ids=[p.stem for p in MODELS] or ["no data"])
def test_minimal_models_give_what_tflite_gives(path: Path | None) -> None:
    path = path or data_path(*FOLDER)
    expected = json.loads(data_path(*FOLDER, "expected.json").read_text())[path.stem]
    model = read_model(path)
    inputs = [array_of(x) for x in expected["inputs"]]
    if "refused" in expected or path.stem in REFUSED_HERE:
        with pytest.raises(TflqError):
            run(model, inputs)
        return
    if expected["resize"]:
        main = resize(model.main, {model.main.inputs[0]: tuple(expected["resize"])})
        model = Model([main, *model.graphs[1:]])
    for ours, values, shape in zip(run(model, inputs), expected["outputs"], expected["output_shapes"], strict=True):
        assert list(ours.shape) == shape
        theirs = np.array(values)
        if ours.dtype.kind == "c":  # pairs; one unit in the last place of the largest (known difference of RFFT2D)
            flat = ours.reshape(-1).view(np.float32)[: theirs.size]
            assert np.abs(flat - theirs).max() <= np.spacing(np.float32(np.abs(theirs).max()))
        else:
            flat = ours.reshape(-1)[: theirs.size]
            assert np.array_equal(flat, theirs.astype(ours.dtype))


def flatten(stated: tuple[int, ...]) -> Graph:
    """Return x[2, 3, 4] -> SHAPE -> its first element, -1 -> RESHAPE, stated as something else."""
    b = GraphBuilder()
    x = b.input("x", (2, 3, 4), DType.FLOAT32)
    shape = b.add("shape", [x], (9,), DType.INT32)
    one = [b.constant(f"c{i}", np.array([i], np.int32)) for i in (0, 1, 1)]
    batch = b.add(
        "strided_slice", [shape, *one], (), DType.INT32, shrink_axis_mask=1, begin_mask=0, end_mask=0,
        ellipsis_mask=0, new_axis_mask=0, offset=False,
    )  # fmt: skip
    rest = b.constant("rest", np.array(-1, np.int32))
    wanted = b.add("pack", [batch, rest], (2,), DType.INT32, axis=0, values_count=2)
    return b.build([b.add("reshape", [x, wanted], stated, DType.FLOAT32)])


@pytest.mark.parametrize("stated", [(1, 1), (7, 9), (2, 12)])
def test_a_chain_of_shapes_is_folded(stated: tuple[int, ...]) -> None:
    graph = flatten(stated)
    settled = settle(graph)
    assert settled.graph.tensors[graph.outputs[0]].shape == (2, 12)
    assert settled.graph.tensors[graph.nodes[2].outputs[0]].data.tolist() == [2, -1]
    assert not settled.open
    assert graph.tensors[graph.nodes[2].outputs[0]].data is None, "the graph itself does not change"


def test_shapes_behind_a_computed_shape_are_open() -> None:
    b = GraphBuilder()
    x, wanted = b.input("x", (6,), DType.FLOAT32), b.input("shape", (2,), DType.INT32)
    y = b.add("reshape", [x, wanted], (1, 1), DType.FLOAT32)
    z = b.add("abs", [y], (1, 1), DType.FLOAT32)
    graph = b.build([z])
    assert settle(graph).open == {y, z}
    found = Engine(graph).run([np.arange(6, dtype=np.float32)[None], np.array([[2, 3]], np.int32)])
    assert found[z].shape == (1, 2, 3)


def test_stated_shapes_of_rows_and_of_others_are_corrected() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 4), DType.FLOAT32)
    y = b.add("abs", [x], (5, 5), DType.FLOAT32)
    axis = b.constant("axis", np.array([1], np.int32))
    z = b.add("mean", [y, axis], (7, 7, 7), DType.FLOAT32, keep_dims=True)
    graph = settle(b.build([z])).graph
    assert (graph.tensors[y].shape, graph.tensors[z].shape) == ((1, 4), (1, 1))
