"""The comparison with TFLite finds what differs, in any chunk, and says what it could not compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq as command
from tests.support.tracked import ROOT
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.diagnosis.difference import Difference
from tflq.diagnosis.verify import TensorVerdict, Verification, verify
from tflq.graph import Affine, DType, GraphBuilder, Model, pruned
from tflq.oracle import Oracle, OracleIdentity
from tflq.sampling import GivenSamples, RandomSamples

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


@pytest.fixture
def digits() -> Model:
    return model_from_bytes(DIGITS.read_bytes())


def with_changed_bias(model: Model, operator: int) -> Model:
    """Return the model with one channel's bias of one operator a little larger."""
    graph = model.main
    bias = graph.nodes[operator].inputs[2]
    data = np.array(graph.tensors[bias].data)
    data[3] += 2000
    changed = graph.copy()
    changed.tensors[bias] = replace(graph.tensors[bias], data=data)
    return Model([changed])


def test_every_tensor_of_the_test_images(digits: Model, oracle: Oracle) -> None:
    images = np.load(ROOT / "tflq" / "data" / "digits_test.npz")["images"]
    samples = GivenSamples([images.reshape(-1, *digits.main.tensors[digits.main.inputs[0]].shape)])
    counts: list[int] = []
    verdict = verify(digits, DIGITS.read_bytes(), samples, oracle, counts.append)
    assert verdict.is_equal
    assert verdict.total.differing == 0
    assert verdict.total.elements == 360 * sum(
        t.size for n in digits.main.nodes for t in [digits.main.tensors[n.outputs[0]]]
    )
    assert (sum(counts), verdict.samples, len(verdict.compared)) == (360, 360, len(digits.main.nodes))
    assert verdict.identity == oracle.identity


def test_a_changed_bias_is_found_where_it_is(digits: Model, oracle: Oracle) -> None:
    changed = with_changed_bias(digits, 2)
    verdict = verify(changed, DIGITS.read_bytes(), RandomSamples(digits.main, 20), oracle)
    assert not verdict.is_equal
    assert [t.difference.is_equal for t in verdict.tensors[:3]] == [True, True, False]
    difference = verdict.tensors[2].difference
    assert difference.first is not None
    assert difference.first.index[-1] == 3
    assert difference.largest > 0
    assert difference.elements == 20 * digits.main.tensors[verdict.tensors[2].index].size


def test_the_first_difference_counts_samples_over_all_chunks(
    digits: Model, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = with_changed_bias(digits, 0)
    samples = RandomSamples(digits.main, 10)
    whole = verify(changed, DIGITS.read_bytes(), samples, oracle)
    monkeypatch.setattr("tflq.diagnosis.verify._MOST_SAMPLES_AT_A_TIME", 3)
    assert verify(changed, DIGITS.read_bytes(), samples, oracle).tensors == whole.tensors


def test_an_output_that_no_operator_writes_is_compared(oracle: Oracle) -> None:
    builder = GraphBuilder()
    builder.input("x", (1, 2), DType.FLOAT32)
    constant = builder.constant("c", np.array([1, 8], np.int32))
    model = Model([builder.build([constant])])
    content = model_to_bytes(model)
    (tensor,) = verify(model, content, RandomSamples(model.main, 3), oracle).tensors
    assert (tensor.operator, tensor.difference) == (None, Difference(6, 0))


def test_nothing_compared_is_not_equal() -> None:
    identity = OracleIdentity("nobody", "0", "BUILTIN_REF")
    verdict = Verification(identity, 1, ())
    assert not verdict.is_equal


@pytest.fixture(scope="module")
def delegated() -> Iterator[Oracle]:
    with Oracle(kernels="AUTO") as judge:
        yield judge


def test_tensors_that_tflite_does_not_return_are_said(digits: Model, oracle: Oracle, delegated: Oracle) -> None:
    verdict = verify(digits, DIGITS.read_bytes(), RandomSamples(digits.main, 2), delegated)
    missing = [t for t in verdict.tensors if t.unavailable is not None]
    assert len(missing) == len(digits.main.nodes) - 1
    assert all(t.difference.elements == 0 for t in missing)
    assert [t.index for t in verdict.compared] == list(digits.main.outputs)


def test_memory_does_not_grow_with_the_samples(digits: Model, oracle: Oracle) -> None:
    import tracemalloc

    def peak(count: int) -> int:
        tracemalloc.start()
        verify(digits, DIGITS.read_bytes(), RandomSamples(digits.main, count), oracle)
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    peak(10)
    assert peak(1024) < 1.5 * peak(512)


def test_written_again_it_is_the_same(digits: Model, oracle: Oracle) -> None:
    content = model_to_bytes(model_from_bytes(DIGITS.read_bytes()))
    verdict = verify(digits, content, RandomSamples(digits.main, 3), oracle)
    assert all(isinstance(t, TensorVerdict) and t.difference.is_equal for t in verdict.tensors)


def aborting(scale: float, rows: int = 600) -> Model:
    """Return a rectifier, a softmax that aborts TFLite's process, and a rectifier."""
    builder = GraphBuilder("abort")
    affine, fine = Affine.per_tensor(1 / 256, -128), Affine.per_tensor(scale, 0)
    x = builder.input("x", (1, rows), DType.INT8, fine)
    y = builder.add("relu", [x], (1, rows), DType.INT8, fine)
    z = builder.add("softmax", [y], (1, rows), DType.INT8, affine, beta=1.0)
    return Model([builder.build([builder.add("relu", [z], (1, rows), DType.INT8, affine)])])


@pytest.mark.usefixtures("oracle")
@pytest.mark.parametrize("scale", [1e-6, 1e-12])
def test_the_operators_before_one_that_aborts_are_compared(scale: float, tmp_path: Path) -> None:
    """With the larger scale the sums of the exponentials abort TFLite, with the smaller one the preparation."""
    path = tmp_path / "abort.tflite"
    path.write_bytes(model_to_bytes(aborting(scale)))
    done = command("verify", path, "-n", 5)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("OK: 0 of 3000 elements differ from TFLite (")
    assert f"5 samples; 1 tensors of {path}" in done.out
    assert "not compared: 2 tensors (operator 1 (softmax 'SOFTMAX_0_1'): " in done.out
    found = command("verify", path, "-n", 5, "--json").json
    assert [row["unavailable"] is None for row in found["tensors"]] == [True, False, False]


def test_a_refused_first_operator_is_an_error(tmp_path: Path) -> None:
    model = aborting(1e-12)
    graph = model.main
    whole = replace(graph, nodes=graph.nodes[1:], inputs=graph.nodes[0].outputs)
    path = tmp_path / "abort.tflite"
    path.write_bytes(model_to_bytes(Model([pruned(whole)])))
    assert "operator 0 (softmax" in command("verify", path, "-n", 5).refused()
