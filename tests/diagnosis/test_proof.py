"""Layers over all inputs: against every input of small layers one by one, and in the runtimes' own programs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tflq
from tests.runtimes.cases import CASES, Case, affine
from tests.support.data import data_path
from tflq.converters.tflite import model_to_bytes
from tflq.diagnosis.proof import prove_layers, single_layer
from tflq.errors import UsageError
from tflq.graph import DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine
from tflq.interpreter.runtimes import RUNTIMES
from tflq.oracle import Oracle
from tflq.oracle.package import RUNTIME_ORACLES, is_installed

INT8 = DType.INT8
NONE = {"fused_activation_function": "none"}


def case_named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def dense(weights: list[list[int]], output_scale: float) -> Graph:
    b = GraphBuilder()
    x = b.input("x", (1, len(weights[0])), INT8, affine(0.5, 7))
    w = b.constant("w", np.array(weights, np.int8), affine(0.25))
    c = b.constant("b", np.arange(len(weights), dtype=np.int32) * 9 - 4, affine(0.125))
    options = {**NONE, "keep_num_dims": False}
    return b.build([b.add("fully_connected", [x, w, c], (1, len(weights)), INT8, affine(output_scale, -3), **options)])


@pytest.mark.parametrize("runtime", ["tflm", "xnnpack", "litert-optimized", "cmsis-nn-single"])
@pytest.mark.parametrize("weights", [[[1, -2], [6, 4]], [[3, 5], [0, -9]]])
def test_every_input_of_a_layer(weights: list[list[int]], runtime: str) -> None:
    """The number of sums that differ is that of all 65536 inputs."""
    graph = dense(weights, 4.0)
    x = np.array(list(product(range(-128, 128), repeat=2)), np.int8)[:, None]
    results = [
        Engine(graph, name).run([x])[graph.outputs[0]][:, 0] for name in ("tflite", RUNTIMES[runtime].arithmetic)
    ]
    differing = 0
    for o, row in enumerate(weights):
        sums = x[:, 0].astype(int) @ np.array(row)
        differing += len(set(sums[results[0][:, o] != results[1][:, o]].tolist()))
    _, (proof,) = prove_layers(Model([graph]), "ref", runtime)
    assert proof.difference is not None
    assert proof.difference.differing == differing
    if differing:
        pair = [Engine(graph, name).run(proof.inputs)[graph.outputs[0]][0][proof.place] for name in ("tflite", runtime)]
        example = proof.difference.example
        assert example is not None
        assert pair == [example.first, example.second]


@pytest.mark.parametrize("name", [case.name for case in CASES])
@pytest.mark.parametrize("runtime", ["xnnpack", "litert-optimized", "tflm"])
def test_samples_do_not_contradict(name: str, runtime: str) -> None:
    case = case_named(name)
    _, (proof,) = prove_layers(Model([case.graph]), "ref", runtime)
    results = [Engine(case.graph, a).run(case.inputs)[case.graph.outputs[0]] for a in ("tflite", runtime)]
    if not np.array_equal(*results):
        assert proof.status != "equal"
    if proof.status == "differs":
        example = proof.difference.example if proof.difference is not None else None
        assert example is not None
        values = [Engine(case.graph, a).run(proof.inputs)[case.graph.outputs[0]][0] for a in ("tflite", runtime)]
        pairs = (
            [tuple(int(v[proof.place]) for v in values)]
            if proof.place
            else list(zip(*(v.flat for v in values), strict=True))
        )
        assert (example.first, example.second) in pairs


def test_counterexamples_in_the_programs() -> None:
    model = tflq.read_model(data_path("models", "kws_ref_model.tflite"))
    runtimes = [name for name in ("xnnpack", "tflm") if is_installed(RUNTIME_ORACLES[name][0])]
    if not runtimes or not is_installed("litert"):
        pytest.skip("ai-edge-litert is not installed")
    for runtime in runtimes:
        graph, proofs = prove_layers(model, "ref", runtime)
        proof = next(p for p in proofs if p.status == "differs")
        content = model_to_bytes(single_layer(graph, proof))
        values = []
        for package, kernels in (("litert", "BUILTIN_REF"), RUNTIME_ORACLES[runtime]):
            with Oracle(package, kernels) as oracle:
                values.append(int(oracle.run(content, proof.inputs, tensors="outputs").outputs[0][0][proof.place]))
        example = proof.difference.example if proof.difference is not None else None
        assert example is not None
        assert values == [example.first, example.second]


def test_small_images_are_not_decided() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 2, 2, 1), INT8, affine(0.5))
    w = b.constant("w", np.arange(-4, 5).astype(np.int8).reshape(1, 3, 3, 1), affine(0.25))
    c = b.constant("b", np.zeros(1, np.int32), affine(0.125))
    options = {"padding": "same", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1, **NONE}
    graph = b.build([b.add("conv_2d", [x, w, c], (1, 2, 2, 1), INT8, affine(1.0), **options)])
    _, (proof,) = prove_layers(Model([graph]), "ref", "litert-optimized")
    assert proof.reason == "no window lies inside the image"


def test_a_result() -> None:
    model = data_path("models", "kws_ref_model.tflite")
    result = tflq.prove(model, "ref", "tflm")
    assert [layer.node.operator for layer in result.differing] == ["fully_connected"]
    assert result.to_dict()["equal"] is False
    assert tflq.prove(model, "tflm", "cmsis-nn").is_equal


def test_several_runtimes() -> None:
    model = data_path("models", "kws_ref_model.tflite")
    names = ("ref", "xnnpack", "tflm", "cmsis-nn")
    result = tflq.compare_runtimes(model, names, tflq.SampleOptions(count=20))
    assert result.groups == [["ref"], ["xnnpack"], ["tflm", "cmsis-nn"]]
    assert [row.layer for row in result.runtimes] == ["", "CONV_2D_0_0", "FULLY_CONNECTED_0_11", "FULLY_CONNECTED_0_11"]
    with pytest.raises(UsageError, match="each once"):
        tflq.compare_runtimes(model, ("ref", "ref"))
