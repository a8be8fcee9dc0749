"""Writes a network as IR, operator by operator, and lists its levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tflq.converters import exchange
from tflq.converters.exchange.emitter import Emitter
from tflq.converters.openvino.emit.layers import ROWS
from tflq.converters.openvino.emit.writer import Writer
from tflq.converters.openvino.ir import Layer, Network, Port
from tflq.converters.openvino.ir.files import network_to_bytes
from tflq.converters.openvino.options import OpenBatch
from tflq.converters.passes.batch import open_constant, open_shape
from tflq.converters.passes.patterns import TO_FIRST, shape_first
from tflq.converters.targets import Artifacts, model_name
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Graph, Model, Tensor
from tflq.interpreter.kernels.openvino.levels import rule_of
from tflq.quoting import json_text
from tflq.schemas import Json

OPEN = -1


def pad(e: Writer) -> None:
    """PAD, PADV2: Pad; a float operand is transposed downstream of the constants of the amounts."""
    if not e.is_named:
        exchange.RULES["pad"](e)
        return
    amounts, shape = e.constant_at(1).astype(int), shape_first(e.output().shape)
    order = TO_FIRST if len(shape) == 4 else range(len(shape))
    ends = [e.port(e.whole(side, [amounts[a][i] for a in order])) for i, side in enumerate(("begin", "end"))]
    fill = e.constant_at(2) if e.optional(2) is not None else np.zeros((), np.float32)
    x, value = e.at(0), e.number("value", fill.astype(np.float32).reshape(()))
    e.result(e.value(e.layer("Pad", [x, *ends, value], [(shape, x.dtype)], pad_mode="constant")[0], True))


def prelu(e: Emitter) -> None:
    """PRELU: PRelu with one slope for each channel.

    Raises:
        UnsupportedError: slopes that differ along other axes.
    """
    data, channels = e.constant_at(1), e.tensor(e.node.inputs[0]).shape[-1]
    if data.size != 1 and (data.size != channels or data.shape[-1] != channels):
        raise UnsupportedError(f"slopes of shape {data.shape}; PRelu takes one for each of {channels} channels")
    e.result(e.add("PRelu", [e.at(0), e.number("slope", data.reshape(-1))]))


_RULES: dict[str, Callable[[Writer], None]] = {
    **exchange.RULES,
    **dict.fromkeys(("pad", "padv2"), pad),
    "fake_quantize": exchange.RULES["quantize"],
    "prelu": prelu,
}


def supported_operators() -> tuple[str, ...]:
    """Return the operators that can be written, all or in part."""
    return tuple(sorted(_RULES))


def translate(graph: Graph) -> Network:
    """Return the network.

    Raises:
        UnsupportedError: operators that cannot be written, all at once; a batch that cannot be open.
    """
    network, problems = _translated(graph)
    if problems:
        raise UnsupportedError("; ".join(problems))
    return open_batch(network, translate(graph.extra.twice)) if isinstance(graph.extra, OpenBatch) else network


def unsupported(graph: Graph) -> tuple[str, ...]:
    """Return one line for each operator that cannot be written."""
    return _translated(graph)[1]


def _translated(graph: Graph) -> tuple[Network, tuple[str, ...]]:
    writer, problems = Writer(graph, ROWS), list[str]()
    for t in graph.inputs:
        try:
            writer.add_input(t)
        except UnsupportedError as error:
            problems.append(str(error))
    problems += writer.write(_RULES)
    for t in graph.outputs:
        if not problems and not graph.tensors[t].is_variable:
            writer.add_output(t)
    return writer.builder.build(), tuple(problems)


COMPILE = {"INFERENCE_PRECISION_HINT": "f32"}
"""CPUs with bfloat16 otherwise compute in it what is not quantized."""


def artifacts_of(graph: Graph, source: Model) -> Artifacts:
    """Return <model>.xml and <model>.bin, IR v11, and levels.json: each tensor's levels, scale and zero point.

    Raises:
        UnsupportedError: operators that cannot be written, all at once.
    """
    name = model_name(source)
    xml, weights = network_to_bytes(translate(graph))
    listed: Json = {
        "model": name,
        "compile": dict(COMPILE),
        "tensors": {str(i): _facts(t) for i, t in enumerate(graph.tensors) if isinstance(t.quantization, Affine)},
    }
    return {
        f"{name}.xml": xml,
        f"{name}.bin": weights,
        "levels.json": (json_text(listed) + "\n").encode(),
    }


def _facts(tensor: Tensor) -> Json:
    affine = tensor.affine
    rule = rule_of(affine)
    return {
        "name": tensor.name,
        "levels": rule.levels,
        "low": rule.input_low.tolist(),
        "high": rule.input_high.tolist(),
        "scale": [float(s) for s in affine.scale],
        "zero_point": [int(z) for z in affine.zero_point],
    }


def open_batch(one: Network, two: Network) -> Network:
    """Return a network for any batch: axes that differ are open, in shapes of Reshape they are -1.

    Args:
        one: for the file's batch.
        two: for twice the batch, otherwise the same.

    Raises:
        UnsupportedError: a constant that holds the batch and is no shape of a Reshape.
    """
    if [layer.type for layer in one.layers] != [layer.type for layer in two.layers]:
        raise UnsupportedError("batch=dynamic: the network is another one for another batch; convert with batch=static")
    shapes = {layer.sources[1].layer for layer in one.layers if layer.type == "Reshape"}
    pairs = zip(one.layers, two.layers, strict=True)
    return replace(one, layers=tuple(_open(a, b, number in shapes) for number, (a, b) in enumerate(pairs)))


def _open(one: Layer, two: Layer, is_shape: bool) -> Layer:
    outputs = tuple(_port(a, b, one.name) for a, b in zip(one.outputs, two.outputs, strict=True))
    if one.value is not None and two.value is not None:
        value = open_constant(one.value, two.value, is_shape, f"constant '{one.name}'")
        return one if value is one.value else replace(one, value=value)
    if one.type == "Parameter":
        shape = ",".join("?" if size == OPEN else str(size) for size in outputs[0].shape)
        return replace(one, data={**one.data, "shape": shape}, outputs=outputs)
    return replace(one, outputs=outputs)


def _port(one: Port, two: Port, name: str) -> Port:
    if len(one.shape) != len(two.shape):
        raise UnsupportedError(f"batch=dynamic: '{name}' has other axes for another batch; convert with batch=static")
    return replace(one, shape=open_shape(one.shape, two.shape, OPEN))
