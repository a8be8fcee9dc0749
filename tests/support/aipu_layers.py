"""One layer of arithmetic `aipu`, built through the graph API, quantized from ranges, and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.converters.aipu import AIPU
from tflq.converters.aipu.origin import Origin
from tflq.converters.settings import parse_settings
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder, Range, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter import Engine, lower

MODES = {
    "symmetric": ["activations=symmetric"],
    "asymmetric": ["activations=asymmetric"],
    "restricted": ["activations=symmetric", "activation_range=restricted"],
    "16 bits": ["activation_bits=16", "lut_items_in_bits=10"],
}
Limits = tuple[float, float]


@dataclass(frozen=True)
class Output:
    """What a layer writes: the shape of one sample and, where the layer needs it, the range."""

    shape: tuple[int, ...]
    limits: Limits | None = None


@dataclass(frozen=True)
class Ran:
    """A layer that ran.

    Attributes:
        graph: quantized.
        inputs: the real numbers that the input quantized values stand for, [S, *shape] each.
        outputs: the real numbers that the output quantized values stand for.
        codes: of the outputs.
        steps: real size of one quantized value of each output.
        limits: the smallest and the largest number that each output can hold.
    """

    graph: Graph
    inputs: list[Array]
    outputs: list[Array]
    codes: list[Array]
    steps: list[float]
    limits: list[Limits]


def limits_of(*arrays: Array) -> Limits:
    """Return the range of real numbers."""
    return float(min(a.min() for a in arrays)), float(max(a.max() for a in arrays))


def float_layer(
    operator: str,
    inputs: Sequence[Array],
    outputs: Sequence[Output],
    constants: Mapping[str, Array] | None = None,
    hidden: Sequence[Limits] = (),
    **attributes: Attribute,
) -> Graph:
    """Return the float graph of one layer; integer inputs are indices, lengths and counts."""
    b = GraphBuilder("layer")
    places = [
        b.input(f"x{i}", x.shape[1:], DType.FLOAT32 if x.dtype.kind == "f" else DType.INT32)
        for i, x in enumerate(inputs)
    ]
    places += [b.constant(f"layer/{key}", np.asarray(v, np.float32)) for key, v in (constants or {}).items()]
    written = [b.tensor(f"y{i}", out.shape, DType.FLOAT32) for i, out in enumerate(outputs)]
    within = tuple(b.tensor(f"layer/hidden{i}", (), DType.FLOAT32) for i in range(len(hidden)))
    b.node(operator, places, written, 1, within or None, **attributes)
    graph = b.build(written)
    graph.extra = Origin("layer", {f"x{i}": f"in{i}" for i in range(len(inputs))}, ())
    ranges = {t: limits_of(x) for t, x in zip(places, inputs, strict=False) if x.dtype.kind == "f"}
    ranges |= {t: out.limits for t, out in zip(written, outputs, strict=True) if out.limits}
    ranges |= dict(zip(within, hidden, strict=True))
    for t, (low, high) in ranges.items():
        limits = Range(np.asarray([low], np.float32), np.asarray([high], np.float32))
        graph.tensors[t] = replace(graph.tensors[t], range=limits)
    return graph


def run_layer(graph: Graph, inputs: Sequence[Array], settings: Sequence[str]) -> Ran:
    """Quantize a float layer and run it."""
    quantized = lower(AIPU.quantize(graph, parse_settings(AIPU.settings, settings)), AIPU.arithmetic)
    tensors = [quantized.tensors[t] for t in (*quantized.inputs, *quantized.outputs)]
    entering, leaving = tensors[: len(inputs)], tensors[len(inputs) :]
    given = [
        AIPU.encode(x, t) if x.dtype.kind == "f" else x.astype(np.int32) for x, t in zip(inputs, entering, strict=True)
    ]
    found = Engine(quantized).run(given, list(quantized.outputs))
    codes = [found[t] for t in quantized.outputs]
    return Ran(
        quantized,
        [real_of(x, t) for x, t in zip(given, entering, strict=True)],
        [real_of(x, t) for x, t in zip(codes, leaving, strict=True)],
        codes,
        [float(t.affine.scale[0]) for t in leaving],
        [limits_of(real_of(np.asarray([t.affine.minimum_code, t.affine.maximum_code]), t)) for t in leaving],
    )


def real_of(codes: Array, tensor: Tensor) -> Array:
    """Return what quantized values stand for, in float64; whole numbers without a type as they are."""
    if not isinstance(tensor.quantization, Affine):
        return codes
    return (codes.astype(np.float64) - float(tensor.affine.zero_point[0])) * float(tensor.affine.scale[0])
