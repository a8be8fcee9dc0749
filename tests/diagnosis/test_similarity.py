"""Similarity of each layer to floating point: against the figures that the Compass Optimizer logged."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.kws import clips
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.diagnosis.similarity import Similarities, similarities
from tflq.graph import DType, GraphBuilder, Model, Range
from tflq.parallel.executions import Execution, for_target
from tflq.sampling import GivenSamples

MODES = {"sym_pt": (), "asym_pc": ("activations=asymmetric", "weights=per_channel")}
LOGGED_CLIP = 100
"""The clip whose figures stand in layers.json."""


def _keywords(mode: str) -> tuple[Similarities, dict[str, dict[str, object]]]:
    layers = json.loads(data_path("golden", "aipu", "kws_float32", mode, "layers.json").read_text(encoding="utf-8"))
    logged = {out["name"]: out for layer in layers for out in layer["outs"]}
    model = read_model(data_path("models", "kws_ref_model_float32.tflite"))
    graph = model.main.copy()
    for t, tensor in enumerate(graph.tensors):
        found = logged.get(f"{tensor.name}_0")
        if found is not None:
            low, high = (np.asarray(found[key], np.float32).reshape(1) for key in ("fmin", "fmax"))
            graph.tensors[t] = replace(tensor, range=Range(low, high))
    target = find_target("aipu")
    execution = for_target(graph, target, parse_settings(target.settings, MODES[mode]))
    sample = clips()[0][LOGGED_CLIP : LOGGED_CLIP + 1].reshape(1, *graph.tensors[graph.inputs[0]].shape)
    return similarities(execution, model, GivenSamples([sample.astype(np.float32)])), logged


@pytest.mark.parametrize("mode", MODES)
def test_cosines_are_those_of_the_optimizer(mode: str) -> None:
    """Its float sums run in another order: figures agree to 1e-8."""
    found, logged = _keywords(mode)
    assert {s.name for s in found.tensors} == set(logged)
    assert found.samples == 1
    for s in found.tensors:
        assert abs(s.cosine - float(np.ravel(logged[s.name]["sim"])[0])) < 1e-8, s.name  # type: ignore[call-overload]


def test_the_input_requantizes_to_itself() -> None:
    found, _ = _keywords("sym_pt")
    first = found.tensors[0]
    assert (first.node, first.source, first.differing, first.largest, first.code_cosine) == ("", "input_1", 0, 0, 1)
    assert found.tensors[1].differing > 0.1


def _relu(low: float, high: float) -> tuple[Execution, Model]:
    builder = GraphBuilder()
    x = builder.input("x", (1, 4), DType.FLOAT32)
    graph = builder.build((builder.add("relu", (x,), (1, 4), DType.FLOAT32),))
    for t, limits in ((x, (-4.0, 4.0)), (graph.outputs[0], (low, high))):
        found = Range(*(np.array([limit], np.float32) for limit in limits))
        graph.tensors[t] = replace(graph.tensors[t], range=found)
    target = find_target("aipu")
    return for_target(graph, target, parse_settings(target.settings)), Model([graph])


def _measured(low: float, high: float, *values: float) -> Similarities:
    execution, model = _relu(low, high)
    return similarities(execution, model, GivenSamples([np.array([[values]], np.float32)]))


def test_figures_by_hand() -> None:
    """Quantized values at 255 / 4: input 127.5 / 4, so 1.0 -> 32 -> RNE(32 * 2) = 64 for 63.75 -> 64.

    3.0 -> 96 -> 192 for 191.
    """
    found = _measured(0.0, 4.0, 1.0, -2.0, 3.0, 0.0).tensors[1]
    real, codes, requantized = np.array([1, 0, 3, 0]), np.array([64, 0, 192, 0]), np.array([64, 0, 191, 0])
    assert found.cosine == pytest.approx(real @ codes / np.linalg.norm(real) / np.linalg.norm(codes), abs=1e-12)
    wanted = requantized @ codes / np.linalg.norm(requantized) / np.linalg.norm(codes)
    assert found.code_cosine == pytest.approx(wanted, abs=1e-12)
    assert (found.differing, found.largest) == (0.25, 1)


def test_zeros_are_similar_to_zeros() -> None:
    found = _measured(0.0, 4.0, -1.0, -2.0, -3.0, 0.0).tensors[1]
    assert (found.cosine, found.code_cosine, found.differing) == (1, 1, 0)


def test_zeros_are_not_similar_to_others() -> None:
    found = _measured(0.0, 4000.0, 1.0, 1.0, 1.0, 1.0)
    assert found.tensors[1].cosine == 0
    execution, _ = _relu(0.0, 4000.0)
    assert found.of_outputs(execution) == 0


def test_several_chunks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    execution, model = _relu(0.0, 4.0)
    samples = GivenSamples([np.random.default_rng(3).normal(0, 2, (9, 1, 4)).astype(np.float32)])
    whole = similarities(execution, model, samples)
    monkeypatch.setattr("tflq.diagnosis.similarity.CHUNK_BYTES", 1)
    steps: list[int] = []
    parts = similarities(execution, model, samples, steps.append)
    assert steps == [1] * 9
    assert [(s.differing, s.largest) for s in parts.tensors] == [(s.differing, s.largest) for s in whole.tensors]
    assert [s.cosine for s in parts.tensors] == pytest.approx([s.cosine for s in whole.tensors], abs=1e-12)
