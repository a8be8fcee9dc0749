"""OpenVINO's CPU plug-in as a judge; tests that need it skip where it is not installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tflq.converters.calibration.ranges import range_of
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.graph import Array, DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine

COMPUTING = ("Convolution", "FullyConnected", "MatMul")
INTEGER = ("u8", "i8")
"""Which of them it is depends on the processor: with AMX a range around zero is i8, without it u8."""


class Runtime:
    """A network that the CPU plug-in has compiled, with INFERENCE_PRECISION_HINT=f32."""

    def __init__(self, xml: bytes, weights: bytes, threads: int = 0) -> None:
        ov: Any = pytest.importorskip("openvino", reason="openvino is not installed (tflq[openvino] has it)")
        core = ov.Core()
        self.processor: str = core.get_property("CPU", "FULL_DEVICE_NAME")
        self.version: str = ov.get_version()
        given = [ov.Tensor(np.frombuffer(weights, np.uint8).copy())] if weights else []
        model = core.read_model(xml, *given)
        wrong = wrongly_stated(xml, model)
        assert not wrong, wrong
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}  # 0: as many as it likes
        self.model = core.compile_model(model, "CPU", settings)

    def run(self, inputs: Sequence[Array]) -> Array:
        """Run samples [S, *shape of the network's input], one by one, and return the first output."""
        return np.stack([np.array(self.model(list(sample))[0]) for sample in zip(*inputs, strict=True)])

    def run_all(self, inputs: Sequence[Array]) -> list[Array]:
        """Return every output [S, *shape], of samples that run one by one."""
        samples = list(zip(*inputs, strict=True)) or [()]
        results = [self.model([np.array(x, order="C") for x in sample]) for sample in samples]
        return [np.stack([np.array(result[i]) for result in results]) for i in range(len(results[0]))]

    def run_exactly(self, inputs: Sequence[Array]) -> Array:
        """Return what `run` does; skip on a processor whose integer sums are not exact."""
        if sums_saturate():
            pytest.skip(f"{self.processor} has no VNNI: OpenVINO's sums of two products saturate at int16 there")
        return self.run(inputs)

    def in_integers(self) -> list[bool]:
        """Return, for each convolution and product that is executed, whether it computes in integers."""
        facts = [op.get_rt_info() for op in self.model.get_runtime_model().get_ordered_ops()]
        return [f["runtimePrecision"].astype(str) in INTEGER for f in facts if f["layerType"].astype(str) in COMPUTING]


def wrongly_stated(xml: bytes, model: Any) -> list[str]:
    """Return the ports whose type or shape the runtime infers otherwise than the file states them."""
    ports = {op.get_friendly_name(): op.outputs() for op in model.get_ordered_ops()}
    wrong = []
    for layer in ElementTree.fromstring(xml).iter("layer"):
        for stated, theirs in zip(layer.findall("output/port"), ports.get(layer.get("name", ""), ()), strict=False):
            shape = [int(dim.text or "") for dim in stated.findall("dim")]
            found = [d.get_length() if d.is_static else -1 for d in theirs.get_partial_shape()]
            kind = _PRECISIONS[theirs.get_element_type().get_type_name()]
            if (
                len(shape) != len(found)
                or stated.get("precision") != kind
                or [n for n, m in zip(shape, found, strict=False) if m not in (n, -1)]
            ):
                wrong.append(f"{layer.get('name')}: stated {stated.get('precision')} {shape}, is {kind} {found}")
    return wrong


_PRECISIONS = {"f32": "FP32", "f16": "FP16", "boolean": "BOOL"} | {
    f"{sign}{bits}": f"{sign.upper()}{bits}" for sign in "iu" for bits in (1, 4, 8, 16, 32, 64)
}


def files_of(artifacts: Mapping[str, bytes]) -> tuple[bytes, bytes]:
    """Return the .xml and the .bin among artifacts."""
    (xml,) = (data for name, data in artifacts.items() if name.endswith(".xml"))
    (weights,) = (data for name, data in artifacts.items() if name.endswith(".bin"))
    return xml, weights


def converted(model: Model, assignments: Sequence[str] = (), layers: Sequence[str] = ()) -> tuple[Engine, bytes, bytes]:
    """Return the target's graph, lowered, and its files."""
    graph = OPENVINO.quantize(model.main, parse_settings(OPENVINO.settings, assignments, layers))
    engine = Engine(graph, "openvino")
    return engine, *files_of(OPENVINO.emit(engine.graph, model))


def as_model(graph: Graph) -> Model:
    """Return a graph as the model of a file."""
    return model_from_bytes(model_to_bytes(graph), "small.tflite")


def channels_first(x: Array) -> Array:
    """Return samples [S, N, H, W, C] as [S, N, C, H, W]; others as they are."""
    return x.transpose(0, 1, 4, 2, 3) if x.ndim == 5 else x


@cache
def sums_saturate() -> bool:
    """Whether the largest products come out too small: without VNNI two of them are added up in int16."""
    b = GraphBuilder("ones")
    x = b.input("x", (1, 6, 6, 8), DType.FLOAT32)
    w = b.constant("w", np.ones((8, 3, 3, 8), np.float32))
    window = {"padding": "valid", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}
    y = b.add("conv_2d", [x, w, b.constant("b", np.zeros(8, np.float32))], (1, 4, 4, 8), DType.FLOAT32, **window)  # type: ignore[arg-type]
    graph = b.build([y])
    for t, high in ((x, 1.0), (y, 72.0)):
        graph.tensors[t] = replace(graph.tensors[t], range=range_of(0.0, high))
    _, xml, weights = converted(Model([graph], source="ones.tflite"))
    found = Runtime(xml, weights).run([np.ones((1, 1, 8, 6, 6), np.float32)])
    return bool(found.max() < 71)
