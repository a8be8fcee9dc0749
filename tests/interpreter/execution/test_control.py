"""Control flow and state: each sample takes its own way, as in TFLite."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.single_op import assert_same_bits
from tflq.converters.tflite import model_to_bytes
from tflq.errors import InputError, OptionError
from tflq.graph import DType, GraphBuilder, Model
from tflq.interpreter import Engine

F32 = DType.FLOAT32


def binary(operator: str, constant: float) -> object:
    """Return a graph x -> x (operator) constant."""
    b = GraphBuilder(operator)
    x = b.input("x", (1, 3), F32)
    y = b.add(operator, [x, b.constant("c", np.full((1, 3), constant, np.float32))], (1, 3), F32,
              fused_activation_function="none")  # fmt: skip
    return b.build([y])


def if_model() -> Model:
    b = GraphBuilder("if")
    condition, x = b.input("condition", (1,), DType.BOOL), b.input("x", (1, 3), F32)
    y = b.add("if", [condition, x], (1, 3), F32, then_subgraph_index=1, else_subgraph_index=2)
    z = b.add("relu", [y], (1, 3), F32)
    return Model([b.build([z]), binary("add", 1.5), binary("mul", -2.0)])


def test_if_sends_each_sample_its_own_way(oracle):
    model = if_model()
    rng = np.random.default_rng(0)
    condition = np.array([[True], [False], [False], [True], [False]])
    x = rng.normal(size=(5, 1, 3)).astype(np.float32)
    out = model.main.outputs[0]
    judged = oracle.run(model_to_bytes(model), [condition, x], tensors="outputs")
    for chunk in (None, 1, 3):
        ours = Engine(model.main, graphs=model.graphs).run([condition, x], chunk_size=chunk)
        assert_same_bits(ours[out], judged.tensors[out], "output")


def while_model() -> Model:
    """Doubles x until the counter reaches the limit."""
    main = GraphBuilder("while")
    i, limit, x = main.input("i", (1,), F32), main.input("limit", (1,), F32), main.input("x", (1, 3), F32)
    outputs = [main.tensor(name, shape, F32) for name, shape in (("i2", (1,)), ("limit2", (1,)), ("x2", (1, 3)))]
    main.node("while", [i, limit, x], outputs, cond_subgraph_index=1, body_subgraph_index=2)
    condition = GraphBuilder("condition")
    i, limit, _ = condition.input("i", (1,), F32), condition.input("n", (1,), F32), condition.input("x", (1, 3), F32)
    less = condition.add("less", [i, limit], (1,), DType.BOOL)
    body = GraphBuilder("body")
    i2, n2, x2 = body.input("i", (1,), F32), body.input("n", (1,), F32), body.input("x", (1, 3), F32)
    plus = body.add("add", [i2, body.constant("one", np.ones(1, np.float32))], (1,), F32,
                    fused_activation_function="none")  # fmt: skip
    twice = body.add("add", [x2, x2], (1, 3), F32, fused_activation_function="none")
    return Model([main.build(outputs), condition.build([less]), body.build([plus, n2, twice])])


def test_while_ends_for_each_sample_on_its_own(oracle):
    model = while_model()
    limits = np.array([[0], [3], [1], [3], [7]], np.float32)
    x = np.random.default_rng(1).normal(size=(5, 1, 3)).astype(np.float32)
    inputs = [np.zeros((5, 1), np.float32), limits, x]
    judged = oracle.run(model_to_bytes(model), inputs, tensors="outputs")
    ours = Engine(model.main, graphs=model.graphs).run(inputs)
    for t in model.main.outputs:
        assert_same_bits(ours[t], judged.tensors[t], f"tensor {t}")


def counter_model() -> Model:
    """Adds the input to a resource variable and returns the sum; CALL_ONCE sets it to 10."""
    start = GraphBuilder("start")
    handle = start.add("var_handle", [], (1,), DType.RESOURCE, container="", shared_name="sum")
    start.node("assign_variable", [handle, start.constant("ten", np.full((1, 2), 10, np.float32))], [])
    main = GraphBuilder("counter")
    x = main.input("x", (1, 2), F32)
    main.node("call_once", [], [], init_subgraph_index=1)
    handle = main.add("var_handle", [], (1,), DType.RESOURCE, container="", shared_name="sum")
    old = main.add("read_variable", [handle], (1, 2), F32)
    new = main.add("add", [old, x], (1, 2), F32, fused_activation_function="none")
    main.node("assign_variable", [handle, new], [])
    return Model([main.build([new]), start.build([])])


def test_a_stream_keeps_state_and_independent_samples_do_not(oracle):
    model = counter_model()
    x = np.arange(8, dtype=np.float32).reshape(4, 1, 2)
    out = model.main.outputs[0]
    judged = oracle.run(model_to_bytes(model), [x], tensors="outputs", state="stream").tensors[out]
    engine = Engine(model.main, graphs=model.graphs, state="stream")
    assert_same_bits(engine.run([x])[out], judged, "stream")
    engine.reset()
    assert_same_bits(engine.run([x])[out], judged, "stream after reset")
    fresh = Engine(model.main, graphs=model.graphs, state="independent").run([x])[out]
    assert_same_bits(fresh, x + np.float32(10), "independent")


def test_state_must_be_chosen():
    model = counter_model()
    with pytest.raises(OptionError, match="choose state=independent"):
        Engine(model.main, graphs=model.graphs).run([np.zeros((2, 1, 2), np.float32)])


def test_a_variable_that_was_never_assigned():
    model = counter_model()
    model.main.nodes = [n for n in model.main.nodes if n.operator != "call_once"]
    with pytest.raises(InputError, match="read before anything was assigned"):
        Engine(model.main, graphs=model.graphs).run([np.zeros((1, 1, 2), np.float32)])
