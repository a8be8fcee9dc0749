"""Every file of the corpus that TFLite runs gives the same integers; floats are within the bound of their operator.

Where a float operator's last bits differ, the operators behind it get other inputs than TFLite's. So an operator whose
result differs is cut out and run on TFLite's own inputs, and judged there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_files, data_path
from tests.support.single_op import bits
from tflq.converters.tflite import model_from_bytes, model_to_bytes, read_model
from tflq.diagnosis.difference import differing
from tflq.diagnosis.known_differences import Place, known_elements, rows_of_node
from tflq.graph import ABSENT, Array, Graph, Model, Node
from tflq.interpreter import Engine
from tflq.oracle import Oracle, OracleRefused, OracleRun
from tflq.sampling import RandomSamples

FILES = [*data_files("corpus"), *data_files("models")]
SAMPLES = 2


@pytest.mark.parametrize("path", FILES or [None], ids=[path.stem for path in FILES] or ["no data"])
def test_same_integers_and_floats_within_their_bounds(
    path: Path | None, oracle: Oracle, optimized_oracle: Oracle
) -> None:
    path = path or data_path("corpus")
    model = read_model(path)
    inputs = RandomSamples(model.main, SAMPLES, seed=5).take(0, SAMPLES)
    compare(model, inputs, run_tflite(path.read_bytes(), inputs, oracle, optimized_oracle), oracle)


def compare(model: Model, inputs: list[Array], judged: OracleRun, oracle: Oracle) -> None:
    """Compare every tensor that TFLite returned; where one differs, its operator alone."""
    graph = model.main
    wanted = [t for node in graph.nodes for t in node.outputs if t in judged.tensors]
    ours = engine(model).run(inputs, [*wanted, *graph.outputs])
    known = {**dict(zip(graph.inputs, inputs, strict=True)), **judged.tensors}
    for node in graph.nodes:
        if all(t not in judged.tensors or same(ours[t], judged.tensors[t]) for t in node.outputs):
            continue
        if node.operator == "stablehlo_composite":
            compare_inside(model, node, known, oracle)
        else:
            check_alone(model, node, known, judged)
    for t in graph.outputs:
        assert t not in judged.tensors or ours[t].shape == judged.tensors[t].shape


def compare_inside(model: Model, node: Node, known: Mapping[int, Array], oracle: Oracle) -> None:
    """Compare the graph that a composite operator runs, as a model of its own, on what the operator got."""
    number = node.attributes.integer("decomposition_subgraph_index")
    inside = replace(model, graphs=[model.graphs[number]], signatures=())
    inputs = [known[t] for t in node.inputs]
    judged = oracle.run(model_to_bytes(inside), inputs, state="independent")
    compare(model_from_bytes(model_to_bytes(inside), "the composite"), inputs, judged, oracle)


def run_tflite(content: bytes, inputs: list[Array], oracle: Oracle, optimized_oracle: Oracle) -> OracleRun:
    """Run a file in the reference kernels, or in the optimized ones where the others lack an operator altogether."""
    try:
        return oracle.run(content, inputs, state="independent")
    except OracleRefused as error:
        if "Didn't find op" not in str(error):
            pytest.skip("TFLite refuses the file, or random samples of it")
        return optimized_oracle.run(content, inputs, state="independent")


def engine(model: Model) -> Engine:
    return Engine(model.main, "tflite", graphs=model.graphs, state="independent")


def check_alone(model: Model, node: Node, known: Mapping[int, Array], judged: OracleRun) -> None:
    """Run one operator on what it got in TFLite."""
    graph = model.main
    needed = [t for t in dict.fromkeys(node.inputs) if t != ABSENT and not graph.tensors[t].is_constant]
    missing = [t for t in needed if t not in known]
    assert not missing, f"{node.operator}: TFLite does not return its inputs {missing}"
    part = graph.copy()
    part.nodes[:] = [node]
    alone = replace(model, graphs=[replace_ends(part, needed, node), *model.graphs[1:]])
    ours = engine(alone).run([known[t] for t in needed], node.outputs)
    if any(t in judged.tensors for t in node.outputs):
        given = [None if t == ABSENT else known.get(t, constant(graph, t)) for t in node.inputs]
        theirs = [judged.tensors.get(t, ours[t]) for t in node.outputs]
        for number, t in enumerate(node.outputs):
            check_within_bound(graph, Place(node, number, given, theirs), ours[t])


def constant(graph: Graph, t: int) -> Array | None:
    """Return a constant as [1, *shape]."""
    data = graph.tensors[t].data
    return None if data is None else data[None]


def replace_ends(graph: Graph, inputs: list[int], node: Node) -> Graph:
    """Return a graph of one operator with these inputs and its outputs."""
    graph.inputs, graph.outputs = tuple(inputs), node.outputs
    return graph


def check_within_bound(graph: Graph, place: Place, ours: Array) -> None:
    """Assert that each element that differs is one of the known differences of this node."""
    node, theirs = place.node, place.outputs[place.number]
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), node.operator
    if same(ours, theirs):
        return
    assert ours.dtype.kind in "fc", f"{node.operator}: integers differ"
    explained = np.zeros(ours.shape, bool)
    for _, mask in known_elements(rows_of_node(graph, node, kernels="BUILTIN_REF"), place, ours):
        explained |= mask
    unknown = differing(ours, theirs) & ~explained
    assert not unknown.any(), f"{node.operator}: {np.count_nonzero(unknown)} of {unknown.size} elements"


def same(ours: Array, theirs: Array) -> bool:
    """Whether two arrays are equal bit for bit, NaN equal to any NaN."""
    if ours.dtype == object or theirs.dtype == object:
        return ours.shape == theirs.shape and all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return False
    equal = bits(ours) == bits(theirs)
    if ours.dtype.kind in "fc":
        equal |= np.isnan(ours) & np.isnan(theirs)
    return bool(equal.all())
