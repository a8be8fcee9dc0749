"""Known differences: the table's conditions, and whom a differing element is blamed on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.interpreter.tflite.test_lstm import basic_float_graph
from tests.support.data import data_path
from tests.support.draw import affine, one_input, two_inputs, with_constants
from tests.support.lstm import Lstm, lstm_graph
from tests.support.types import FLOAT32, INT8, INT16
from tflq.converters.tflite import model_from_bytes, model_to_bytes, read_model
from tflq.diagnosis.difference import Difference
from tflq.diagnosis.known_differences import (
    KNOWN_DIFFERENCES,
    Blame,
    Effect,
    Place,
    known_elements,
    label_of,
    rows_of,
    rows_of_node,
    summed,
)
from tflq.diagnosis.known_differences.blame import INHERITED
from tflq.diagnosis.known_differences.row import slots_behind_the_last_box
from tflq.diagnosis.verify import TensorVerdict, Verification, verify
from tflq.graph import Array, DType, Graph, GraphBuilder, Model, Node
from tflq.interpreter import Engine
from tflq.oracle import Oracle, OracleIdentity
from tflq.sampling import GivenSamples
from tflq.schemas.tflite.flexbuffer import encode_flexbuffer

IDENTITY = OracleIdentity("ai-edge-litert", "2", "BUILTIN_REF")


def effects(graph: Graph, number: int = 0, package: str = "", kernels: str = "") -> list[Effect]:
    return [row.effect for row in rows_of_node(graph, graph.nodes[number], package, kernels)]


def judged(graph: Graph, samples: Sequence[Array], oracle: Oracle) -> Verification:
    content = model_to_bytes(graph)
    return verify(model_from_bytes(content), content, GivenSamples(list(samples)), oracle)


def float_chain(*operators: str) -> Graph:
    b = GraphBuilder("chain")
    t = b.input("x", (40,), FLOAT32)
    for operator in operators:
        t = b.add(operator, [t], (40,), FLOAT32)
    return b.build([t])


def test_every_row_says_why_and_holds_for_named_types():
    for row in KNOWN_DIFFERENCES:
        assert row.reason, row.name
        assert bool(row.units) <= (row.effect is Effect.LAST_BITS), row.name
        assert (row.when is None and row.elements is None) or row.effect is not Effect.REFUSED, row.name
        for label in row.types:
            data = label.removesuffix("*").removesuffix("q")
            assert DType(data), row.name


@pytest.mark.parametrize(
    ("graph", "label"),
    [
        (one_input("tanh", (3,), (FLOAT32, None), (FLOAT32, None)), "float32"),
        (one_input("tanh", (3,), (INT8, affine(INT8, 0.1)), (INT8, affine(INT8, 2.0**-7))), "int8q"),
        (two_inputs("not_equal", ((3,), (3,)), ((INT16, None),) * 2, (DType.BOOL, None)), "int16"),
        (lstm_graph("lstm", Lstm(steps=0), "hybrid"), "float32*int8"),
        (lstm_graph("lstm", Lstm(steps=0), "float"), "float32"),
    ],
)
def test_labels_of_nodes(graph, label):
    assert label_of(graph, graph.nodes[-1]) == label


def test_a_bound_holds_for_its_types_only():
    exact = one_input("tanh", (3,), (INT8, affine(INT8, 0.1)), (INT8, affine(INT8, 2.0**-7)))
    assert effects(one_input("tanh", (3,), (FLOAT32, None), (FLOAT32, None))) == [Effect.LAST_BITS]
    assert effects(exact) == []
    assert [row.units for row in rows_of("tanh", "float32")] == [2]
    assert rows_of("conv_2d", "float32*int4")[0].when is not None


@pytest.mark.parametrize(
    ("how", "is_bounded"),
    [
        (Lstm(cells=8, outputs=8), False),
        (Lstm(cells=6, outputs=6), True),
        (Lstm(cells=8, outputs=3, projection=True), False),
        (Lstm(batch=2, inputs=600, cells=8, outputs=8, time_major=True), True),
        (Lstm(batch=2, inputs=600, cells=8, outputs=8), False),
        (Lstm(batch=1, inputs=600, cells=8, outputs=8, time_major=True), False),
        (Lstm(batch=2, inputs=504, cells=8, outputs=8, time_major=True), False),
    ],
)
@pytest.mark.parametrize("kind", ["float", "hybrid"])
def test_float_lstms_are_exact_where_gates_fill_registers(how, is_bounded, kind):
    graph = lstm_graph("unidirectional_sequence_lstm", how, kind)
    assert effects(graph, -1) == [Effect.LAST_BITS] * is_bounded


@pytest.mark.parametrize(("units", "is_bounded"), [(4, False), (8, False), (5, True)])
def test_the_basic_cell_has_four_gates_in_a_matrix(units, is_bounded):
    graph = basic_float_graph(0, 1, 3, units, False)
    assert effects(graph) == [Effect.LAST_BITS] * is_bounded


@pytest.mark.parametrize(("package", "expected"), [("tensorflow", [Effect.UNDEFINED]), ("ai-edge-litert", [])])
def test_a_row_of_one_package(package, expected):
    graph = one_input("cast", (3,), (FLOAT32, None), (INT8, None))
    assert effects(graph, package=package) == expected
    place = Place(graph.nodes[0], 0, [np.array([[1.5, 300, np.nan]], np.float32)], [np.array([[1, 2, 3]], np.int8)])
    (found,) = known_elements(rows_of_node(graph, graph.nodes[0], "tensorflow"), place, np.array([[0, 9, 9]], np.int8))
    assert found[1].tolist() == [[False, True, True]]


def test_the_place_of_nan_along_the_last_axis_only():
    last, first = (with_constants("arg_max", (4, 5), (size,), [np.array(axis, np.int32)], FLOAT32) for size, axis in
                   ((4, 1), (5, 0)))  # fmt: skip
    assert effects(first) == []
    x = np.zeros((1, 4, 5), np.float32)
    x[0, 2, 1] = np.nan
    place = Place(last.nodes[0], 0, [x, None], [np.zeros((1, 4), np.int32)])
    (found,) = known_elements(rows_of_node(last, last.nodes[0]), place, np.ones((1, 4), np.int32))
    assert found[1].tolist() == [[False, False, True, False]]


def test_results_of_a_loop_that_nothing_reads_may_be_anything():
    """Keras' stacked LSTM: TFLite returns what the memory held. A result that is read is explained to 4 ulp only."""
    model = read_model(str(data_path("cases", "keras", "files", "lstm_stack.float.tflite")))
    graph = model.main
    x = np.random.default_rng(0).standard_normal((1, *graph.tensors[graph.inputs[0]].shape)).astype(np.float32)
    loop = next(node for node in graph.nodes if node.operator == "while")
    read = {t for node in graph.nodes for t in node.inputs} | set(graph.outputs)
    floats = [t for t in loop.outputs if graph.tensors[t].dtype is FLOAT32]
    ours = Engine(graph, "tflite", graphs=model.graphs).run([x], [t for node in graph.nodes for t in node.outputs])
    for t in floats:
        theirs = {**ours, t: ours[t] + np.float32(100)}
        blame = Blame(model, IDENTITY)
        blame.add([x], ours, theirs)
        explained = sum(known.elements for known in blame.known(t))
        assert explained == (0 if t in read else ours[t].size)
    assert {t in read for t in floats} == {True, False}


@pytest.mark.parametrize(("regular", "expected"), [(False, [Effect.UNDEFINED]), (True, [])])
def test_only_fast_suppression_leaves_slots_open(regular, expected):
    graph = one_input("relu", (3,), (FLOAT32, None), (FLOAT32, None))
    options = encode_flexbuffer({"use_regular_nms": regular})
    graph.nodes[0] = replace(
        graph.nodes[0], operator="custom", custom_code="TFLite_Detection_PostProcess", custom_options=options
    )
    assert effects(graph) == expected


def test_slots_behind_the_last_box():
    node = Node("custom", (), ())
    outputs = [np.zeros((2, 1, 3, 4)), np.zeros((2, 1, 3)), np.zeros((2, 1, 3)), np.array([[2.0], [0.0]])]
    boxes, classes, _, count = (slots_behind_the_last_box(Place(node, n, [], outputs)) for n in range(4))
    assert classes[:, 0].tolist() == [[False, False, True], [True, True, True]]
    assert (boxes == classes[..., None]).all()
    assert not count.any()


def blamed(graph: Graph, x: Array, theirs: dict[int, Array]) -> tuple[list[dict[str, int]], int]:
    """Return the reasons of each node's output, and the number of elements that none explains."""
    ours = Engine(graph).run([x], list(theirs))
    blame = Blame(Model([graph]), IDENTITY)
    blame.add([x], ours, theirs)
    known = [blame.known(t) for t in theirs]
    verdicts = [
        TensorVerdict(t, "", "", (), 0, Difference(theirs[t].size, int((ours[t] != theirs[t]).sum())), None, found)
        for t, found in zip(theirs, known, strict=True)
    ]
    return [{k.reason: k.elements for k in found} for found in known], sum(v.unknown for v in verdicts)


def nudged(values: Array, places: int, units: int) -> Array:
    moved = values.copy()
    moved.reshape(-1).view(np.int32)[:places] += units
    return moved


@pytest.fixture
def x() -> Array:
    return np.random.default_rng(3).normal(size=(2, 40)).astype(np.float32)


def nudged_tanh(x, ulps):
    """tanh -> abs, and results of tanh of which five are some units in the last place off."""
    graph = float_chain("tanh", "abs")
    tanh, absolute = (n.outputs[0] for n in graph.nodes)
    theirs = Engine(graph).run([x], [tanh])
    theirs[tanh] = nudged(theirs[tanh], 5, ulps)
    return graph, tanh, absolute, theirs


def test_last_bits_pass_on_to_what_is_computed_from_them(x):
    graph = float_chain("tanh", "abs", "neg")
    tanh, absolute, negative = (n.outputs[0] for n in graph.nodes)
    theirs = Engine(graph).run([x], [tanh])
    theirs[tanh] = nudged(theirs[tanh], 5, 2)
    theirs[absolute] = np.abs(theirs[tanh])
    theirs[negative] = -theirs[absolute]
    (own, *behind), unknown = blamed(graph, x, theirs)
    assert [(name.startswith("tanh: last bits: up to 2 ulp"), n) for name, n in own.items()] == [(True, 5)]
    assert behind == [{INHERITED: 5}, {INHERITED: 5}]
    assert unknown == 0


def test_what_exceeds_the_bound_is_unknown_and_so_is_what_follows_in_its_sample(x):
    graph, tanh, absolute, theirs = nudged_tanh(x, 3)
    theirs[tanh][1] = nudged(theirs[tanh][1], 4, 1)
    theirs[absolute] = np.abs(theirs[tanh])
    (own, behind), unknown = blamed(graph, x, theirs)
    assert list(own.values()) == [4]
    assert behind == {INHERITED: 4}
    assert unknown == 10


def test_an_operator_that_errs_itself_is_not_excused_by_its_inputs(x):
    graph, tanh, absolute, theirs = nudged_tanh(x, 1)
    theirs[absolute] = np.abs(theirs[tanh])
    theirs[absolute][0, :7] += 1
    (_, behind), unknown = blamed(graph, x, theirs)
    assert behind == {}
    assert unknown == 7


def test_the_sum_of_int8_is_known_and_what_follows_it(oracle):
    b = GraphBuilder("sum")
    source = affine(INT8, 0.1, 3)
    data = b.input("x", (4, 6), INT8, source)
    total = b.add("sum", [data, b.constant("a", np.array([1], np.int32))], (4,), INT8, source, keep_dims=False)
    graph = b.build([b.add("relu", [total], (4,), INT8, source)])
    given = np.random.default_rng(0).integers(-128, 128, (9, 4, 6)).astype(np.int8)
    verdict = judged(graph, [given], oracle)
    assert verdict.total.differing > 0
    assert not verdict.is_equal
    assert verdict.is_explained
    assert [k.reason.split(":")[0] for k in verdict.known] == ["sum", INHERITED]
    assert sum(k.elements for k in verdict.known) == verdict.total.differing


def test_a_wrong_model_is_not_explained(oracle):
    graph = float_chain("tanh", "abs")
    content = model_to_bytes(graph)
    other = model_from_bytes(content)
    other.main.nodes[1] = replace(other.main.nodes[1], operator="neg")
    given = np.linspace(0.1, 2, 80, dtype=np.float32).reshape(2, 40)
    verdict = verify(other, content, GivenSamples([given]), oracle)
    assert not verdict.is_explained
    assert verdict.tensors[1].unknown == 80


def test_elements_of_a_reason_add_up():
    graph = float_chain("tanh")
    y = graph.nodes[0].outputs[0]
    x = np.zeros((1, 40), np.float32) + 0.5
    blame = Blame(Model([graph]), IDENTITY)
    for count in (3, 4):
        theirs = {y: nudged(np.tanh(x), count, 1)}
        blame.add([x], {y: np.tanh(x)}, theirs)
    (known,) = blame.known(y)
    assert known.elements == 7
    assert summed([known, known])[0].elements == 14
