"""The engine: chunks, kept tensors, listeners, memory, and the refusal of wrong inputs."""

from __future__ import annotations

import tracemalloc
import weakref
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.kernels_for_tests import NAME, Calls, calls  # noqa: F401
from tests.support.draw import affine, kernel_settings
from tflq.errors import GraphError, InputError, OptionError
from tflq.graph import ABSENT, Array, DType, Graph, GraphBuilder, Node
from tflq.interpreter import Engine, lower
from tflq.interpreter.execution import engine as engine_module

INT8 = DType.INT8
SAMPLES = 7


def network() -> Graph:
    """int8: conv -> average pool -> (+ constant) -> reshape -> fully connected -> softmax."""
    b = GraphBuilder()
    rng = np.random.default_rng(0)
    q = [affine(INT8, scale, zero) for scale, zero in ((0.05, 3), (0.02, 0), (0.1, -7), (1 / 256, -128))]
    x = b.input("x", (1, 6, 5, 3), INT8, q[0])
    w = b.constant("w", rng.integers(-127, 128, (4, 3, 3, 3), np.int8), q[1])
    bias = b.constant("b", rng.integers(-999, 999, 4, np.int32))
    window = {"stride_w": 1, "stride_h": 1, "padding": "same", "fused_activation_function": "relu"}
    y = b.add("conv_2d", [x, w, bias], (1, 6, 5, 4), INT8, q[2], **window)
    window |= {"stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2, "padding": "valid"}
    y = b.add("average_pool_2d", [y], (1, 3, 2, 4), INT8, q[2], **window)
    c = b.constant("c", rng.integers(-128, 128, (2, 4), np.int8), q[0])
    y = b.add("add", [y, c], (1, 3, 2, 4), INT8, q[2], fused_activation_function="none")
    y = b.add("reshape", [y], (1, 24), INT8, q[2], new_shape=(1, 24))
    v = b.constant("v", rng.integers(-127, 128, (10, 24), np.int8), q[1])
    y = b.add("fully_connected", [y, v, ABSENT], (1, 10), INT8, q[2], fused_activation_function="none")
    return b.build([b.add("softmax", [y], (1, 10), INT8, q[3], beta=1.0)])


GRAPH = network()
ALL = tuple(range(len(GRAPH.tensors)))
X = np.random.default_rng(1).integers(-128, 128, (SAMPLES, 1, 6, 5, 3), np.int8)


def doubled(constant: bool = False) -> Graph:
    """x -> add itself -> double, of int32; or all of it on a constant."""
    b = GraphBuilder()
    x = b.constant("c", np.arange(3, dtype=np.int32)) if constant else b.input("x", (3,), DType.INT32)
    y = b.add("add", [x, x], (3,), DType.INT32)
    return b.build([b.add("double", [y], (3,), DType.INT32, factor=5)])


@kernel_settings
@given(chunk_size=st.integers(1, SAMPLES + 2), kept=st.sets(st.sampled_from(ALL), min_size=1))
def test_results_do_not_depend_on_chunks_or_on_what_is_kept(chunk_size: int, kept: set[int]) -> None:
    engine = Engine(GRAPH)
    whole = engine.run([X], ALL)
    parts = engine.run([X], kept, chunk_size)
    assert parts.keys() == kept
    for t in kept:
        assert np.array_equal(parts[t], whole[t])
        assert parts[t].shape == (SAMPLES, *GRAPH.tensors[t].shape)


@kernel_settings
@given(chunk_size=st.none() | st.integers(1, SAMPLES + 2), threads=st.integers(2, 4))
def test_results_do_not_depend_on_threads(chunk_size: int | None, threads: int) -> None:
    whole = Engine(GRAPH).run([X], ALL)
    parts = Engine(GRAPH, threads=threads).run([X], ALL, chunk_size)
    for t in ALL:
        assert np.array_equal(parts[t], whole[t])


def test_threads_share_the_samples_out(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(GRAPH, threads=3)
    assert [len(chunk[GRAPH.outputs[0]]) for chunk in engine.iterate([X])] == [3, 3, 1]
    monkeypatch.setattr(engine, "chunk_size", lambda _: 2)
    assert [len(chunk[GRAPH.outputs[0]]) for chunk in engine.iterate([X])] == [2, 2, 2, 1]
    engine.threads = 1
    assert [len(chunk[GRAPH.outputs[0]]) for chunk in engine.iterate([X])] == [2, 2, 2, 1]


@pytest.mark.parametrize("threads", [0, -1])
def test_less_than_one_thread_is_refused(threads: int) -> None:
    with pytest.raises(OptionError, match=f"{threads} threads; 1 or more are needed"):
        Engine(GRAPH, threads=threads)


def test_a_sample_alone_gives_what_it_gives_among_others() -> None:
    engine = Engine(GRAPH)
    together = engine.run([X])[GRAPH.outputs[0]]
    for s in range(SAMPLES):
        assert np.array_equal(engine.run([X[s : s + 1]])[GRAPH.outputs[0]][0], together[s])


def test_inputs_and_constants_can_be_kept() -> None:
    kept = Engine(GRAPH).run([X], (0, 1))
    assert np.array_equal(kept[0], X)
    assert kept[1].shape == (SAMPLES, *GRAPH.tensors[1].shape)
    assert np.array_equal(kept[1][-1], GRAPH.tensors[1].data)


def test_a_graph_without_inputs_runs_once(calls: Calls) -> None:  # noqa: F811
    graph = doubled(constant=True)
    engine = Engine(graph, NAME)
    assert calls.run == ["add", "double"]
    assert engine.run([])[graph.outputs[0]].tolist() == [[0, 10, 20]]
    assert calls.run == ["add", "double"]


def test_a_lowered_graph_is_not_lowered_again(calls: Calls) -> None:  # noqa: F811
    lowered = lower(doubled(), NAME)
    assert sorted(calls.lowered) == ["ADD_0_0", "DOUBLE_0_1"]
    engine = Engine(lowered)
    assert sorted(calls.lowered) == ["ADD_0_0", "DOUBLE_0_1"]
    assert engine.run([np.ones((2, 3), np.int32)])[lowered.outputs[0]].tolist() == [[10] * 3] * 2


class Seen:
    """Writes down what it is shown."""

    def __init__(self, name: str, log: list[tuple[object, ...]]) -> None:
        self.name, self.log = name, log

    def will_run(self, index: int, node: Node, inputs: Sequence[Array | None]) -> None:
        self.log.append((self.name, "will", index, node.name, [None if a is None else a.copy() for a in inputs]))

    def did_run(self, index: int, node: Node, outputs: Sequence[Array]) -> None:
        self.log.append((self.name, "did", index, node.name, [a.copy() for a in outputs]))


def test_listeners_see_every_node_in_order_with_its_arrays() -> None:
    log: list[tuple[object, ...]] = []
    engine = Engine(GRAPH, listeners=[Seen("a", log), Seen("b", log)])
    values = engine.run([X], ALL, chunk_size=SAMPLES)
    names = [node.name for node in GRAPH.nodes]
    expected = [(who, when, i, n) for i, n in enumerate(names) for when in ("will", "did") for who in "ab"]
    assert [entry[:4] for entry in log] == expected
    for _, when, i, _, arrays in log:
        node = GRAPH.nodes[i]
        for t, array in zip(node.inputs if when == "will" else node.outputs, arrays, strict=True):
            assert (array is None) == (t == ABSENT)
            assert array is None or np.array_equal(array, values[t])


def test_listeners_see_each_chunk_and_change_nothing() -> None:
    log: list[tuple[object, ...]] = []
    listened = Engine(GRAPH, listeners=[Seen("a", log)]).run([X], chunk_size=3)
    assert len(log) == 2 * len(GRAPH.nodes) * 3
    assert np.array_equal(listened[GRAPH.outputs[0]], Engine(GRAPH).run([X])[GRAPH.outputs[0]])


def test_iterate_runs_only_the_chunks_that_are_taken() -> None:
    log: list[tuple[object, ...]] = []
    chunks = Engine(GRAPH, listeners=[Seen("a", log)]).iterate([X], chunk_size=3)
    assert not log
    assert [len(next(chunks)[GRAPH.outputs[0]]) for _ in range(2)] == [3, 3]
    assert len(log) == 2 * len(GRAPH.nodes) * 2
    assert [len(chunk[GRAPH.outputs[0]]) for chunk in chunks] == [1]


def test_intermediate_tensors_are_let_go() -> None:
    class Holder(Seen):
        def did_run(self, index: int, node: Node, outputs: Sequence[Array]) -> None:
            base = outputs[0] if outputs[0].base is None else outputs[0].base
            self.log.append((index, weakref.ref(base)))
            alive = [i for i, reference in self.log if reference() is not None]
            assert min(alive) >= index - 2

        def will_run(self, index: int, node: Node, inputs: Sequence[Array | None]) -> None:
            pass

    Engine(GRAPH, listeners=[Holder("", [])]).run([X])


def test_memory_does_not_grow_with_the_samples() -> None:
    engine = Engine(GRAPH)

    def peak_bytes(samples: int) -> int:
        inputs = np.broadcast_to(X[:1], (samples, *X.shape[1:]))  # takes no memory itself
        tracemalloc.start()
        for _ in engine.iterate([inputs], chunk_size=32):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_bytes(4096)  # fits the maps in float64 and in float32
    assert peak_bytes(1024) <= 1.1 * peak_bytes(64)


def test_chunks_fit_their_bound_and_hold_a_sample_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(GRAPH)
    monkeypatch.setattr(engine_module, "CHUNK_BYTES", 1)
    assert engine.chunk_size() == 1
    monkeypatch.setattr(engine_module, "CHUNK_BYTES", 1 << 20)
    largest = 4 * (6 * 5 * 3 + 6 * 5 * 4)
    assert engine.chunk_size() == (1 << 20) // largest


def test_inputs_are_not_changed_and_may_be_read_only(calls: Calls) -> None:  # noqa: F811
    x = np.ones((2, 3), np.int32)
    x.setflags(write=False)
    Engine(doubled(), NAME).run([x])
    copy = X.copy()
    Engine(GRAPH).run([X])
    assert np.array_equal(X, copy)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "0 input arrays were given, the model has 1 inputs"),
        ([X, X], "2 input arrays were given, the model has 1 inputs"),
        ([X.astype(np.uint8)], "input 'x': the array is uint8, the model takes int8"),
        ([X.astype(np.float32)], "input 'x': the array is float32, the model takes int8"),
        ([X[0]], r"input 'x': the array has shape \(1, 6, 5, 3\), the model takes \(samples, 1, 6, 5, 3\)"),
        ([X[:, :, :5]], r"input 'x': the array has shape \(7, 1, 5, 5, 3\), the model takes \(samples, 1, 6, 5, 3\)"),
        ([np.int8(1)], r"input 'x': the array has shape \(\), the model takes"),
        ([X[:0]], r"inputs have \[0\] samples; they need the same number, 1 or more"),
        ([X.tolist()], "input 'x': the array is int64, the model takes int8"),
    ],
)
def test_wrong_inputs_are_refused(inputs: list[Array], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Engine(GRAPH).run(inputs)


def test_different_numbers_of_samples_are_refused(calls: Calls) -> None:  # noqa: F811
    b = GraphBuilder()
    x, y = (b.input(name, (3,), DType.INT32) for name in "xy")
    engine = Engine(b.build([b.add("add", [x, y], (3,), DType.INT32)]), NAME)
    with pytest.raises(InputError, match=r"inputs have \[1, 2\] samples; they need the same number"):
        engine.run([np.ones((2, 3), np.int32), np.ones((1, 3), np.int32)])


@pytest.mark.parametrize("chunk_size", [0, -1])
def test_chunks_of_no_samples_are_refused(chunk_size: int) -> None:
    with pytest.raises(OptionError, match=f"chunks of {chunk_size} samples; 1 or more are needed"):
        Engine(GRAPH).run([X], chunk_size=chunk_size)


@pytest.mark.parametrize("t", [-1, len(ALL), 999])
def test_tensors_that_do_not_exist_are_refused(t: int) -> None:
    with pytest.raises(GraphError, match=f"tensor {t} was asked for, but the graph computes no such tensor"):
        Engine(GRAPH).run([X], [t])
