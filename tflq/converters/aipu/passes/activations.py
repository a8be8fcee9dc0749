"""Activations that are written as sums and products, and those that go into the layer in front of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.passes.layers import Layers
from tflq.converters.aipu.passes.pattern import Match, Number, Op, Value, match, near, op
from tflq.graph import Attributes, Node, Range
from tflq.graph.attributes import Attribute

RELU, RELU6, LEAKY = "RELU", "RELU6", "LEAKYRELU"
X = Value("x")


def as_written(value: float) -> float:
    """Return a number as the Parser leaves it, which writes six decimals."""
    return float(f"{value:f}")


def _act(x: Op | Value, method: str, shared: bool = False) -> Op:
    return op("activation", x, shared=shared, method=method)


def _shifted(shared: bool = False) -> Op:
    """relu6(x + 3)."""
    return _act(op("add", X, Number("three", (3.0,)), shared=shared), RELU6, shared)


_SIXTH = (1 / 6,)
_SQUARED = op("square", X)
_ROOT = op("rsqrt", op("maximum", op("reduce", _SQUARED, name="sum", method="SUM", keepdims=True), Number("epsilon")))

Keys = Callable[[Layers, Match], dict[str, Attribute] | None]


def _always(**keys: Attribute) -> Keys:
    return lambda _layers, _found: keys


def _swish(_layers: Layers, found: Match) -> dict[str, Attribute]:
    return {"method": "SWISH", "alpha": as_written(found.number("alpha"))}


def _hard_sigmoid(_layers: Layers, found: Match) -> dict[str, Attribute] | None:
    """max(low, min(high, x + b)) * c, where c is 1 / high."""
    limits, factor = found.nodes["clip"].attributes, found.number("factor")
    low, high = (0.0, 6.0) if limits["method"] == RELU6 else (limits.get("clip_min"), limits.get("clip_max"))
    if not isinstance(low, float) or not isinstance(high, float) or not near(1 / np.float32(factor), high):
        return None
    largest = 1 / factor
    keys = {"alpha": factor, "beta": found.number("offset") / largest, "clip_min": low / largest, "clip_max": 1.0}
    return {"method": "HARDSIGMOID", **{key: as_written(value) for key, value in keys.items()}}


_LIMITED = op("activation", op("add", X, Number("offset")), name="clip")

_FORMS: Sequence[tuple[Op, Keys]] = (
    (op("mul", X, _act(X, "SIGMOID")), _always(method="SILU")),
    (op("mul", X, _act(op("mul", X, Number("alpha")), "SIGMOID")), _swish),
    (op("mul", op("mul", X, _shifted()), Number("sixth", _SIXTH)), _always(method="HARDSWISH")),
    (op("mul", X, op("mul", _shifted(), Number("sixth", _SIXTH))), _always(method="HARDSWISH")),
    (
        op("mul", _shifted(shared=True), Number("sixth", (*_SIXTH, 0.16667))),
        _always(method="HARDSIGMOID", alpha=as_written(1 / 6), beta=0.5, clip_min=0.0, clip_max=1.0),
    ),
    (op("mul", replace(_LIMITED, shared=True), Number("factor")), _hard_sigmoid),
    (op("log", op("add", op("exp", X, shared=True), Number("one", (1.0,)), shared=True)), _always(method="SOFTPLUS")),
    (op("mul", X, _act(_act(X, "SOFTPLUS"), "TANH")), _always(method="MISH")),
)
"""What is written, and the keys of the Activation that it becomes, in the Parser's order."""


def recognise(layers: Layers) -> None:
    """Let written-out activations become Activation layers, named as their last one."""
    for pattern, keys_of in _FORMS:
        for node in list(layers.nodes.values()):
            found = match(layers, node, pattern) if node.name in layers.nodes else None
            keys = keys_of(layers, found) if found else None
            if found and keys:
                layers.become(node, "activation", (found.values["x"],), keys)
        layers.prune()


def normalise(layers: Layers) -> None:
    """X * rsqrt(max(sum(x^2), epsilon)): Normalization L2."""
    pattern = op("mul", X, _ROOT)
    for node in list(layers.nodes.values()):
        found = match(layers, node, pattern)
        if found:
            keys: dict[str, Attribute] = {
                "axis": found.nodes["sum"].attributes["axis"],
                "method": "L2",
                "epsilon": float(f"{found.number('epsilon'):.8e}"),
            }
            layers.become(node, "normalization", (found.values["x"],), keys)
    layers.prune()


def limit_sigmoids(layers: Layers) -> None:
    """A SIGMOID without a range that is read once has 0..1, as the Parser states it of a .tflite."""
    full = Range(np.zeros(1, np.float32), np.ones(1, np.float32))
    for node in layers.nodes.values():
        (t, *_) = node.outputs
        is_free = layers.tensors[t].range is None and layers.uses(t) == 1
        if node.attributes.get("method") == "SIGMOID" and is_free:
            layers.tensors[t] = replace(layers.tensors[t], range=full)


def clip_relu(layers: Layers) -> None:
    """A minimum by a number behind RELU: CLIP from 0, which up to 6 is RELU6."""
    pattern = op("minimum", op("activation", X, method=RELU, shared=True), Number("high"))
    for node in list(layers.nodes.values()):
        found = match(layers, node, pattern)
        if found and found.number("high") >= 0:
            layers.become(node, "activation", (found.values["x"],), _clipped(0.0, found.number("high")))
    layers.prune()


def clip_pairs(layers: Layers) -> None:
    """Minimum and maximum by numbers, one behind the other: CLIP, named as the last."""
    for first, last in (("minimum", "maximum"), ("maximum", "minimum")):
        pattern = op(last, op(first, X, Number(first)), Number(last))
        for node in list(layers.nodes.values()):
            found = match(layers, node, pattern)
            if found:
                keys = _clipped(found.number("maximum"), found.number("minimum"))
                layers.become(node, "activation", (found.values["x"],), keys)
                layers.limits_of_pairs.add(node.name)
    layers.prune()


def _clipped(low: float, high: float) -> dict[str, Attribute]:
    if near(low, 0.0) and near(high, 6.0):
        return {"method": RELU6}
    return {"method": "CLIP", "clip_min": as_written(low), "clip_max": as_written(high)}


_HOSTS = ("convolution", "depthwise_conv", "conv_transpose", "fully_connected", "convolution_3d", "eltwise")
_BROADCASTING = ("add", "sub", "mul")
RECTIFIERS = (RELU, RELU6, LEAKY)
"""Those that go into the layer in front."""


_LOSE = ("ELU", "SIGMOID", "TANH")


def loses_rectifier(host: Node) -> bool:
    """Whether the Parser takes a rectifier into a layer that is a function without one."""
    return host.operator == "activation" and host.attributes.get("method") in _LOSE


def _takes(host: Node, method: str) -> bool:
    is_host = host.operator in _HOSTS or (host.operator in _BROADCASTING and method == RELU)
    return is_host and host.attributes.get("with_activation") == "NONE"


def _fused(host: Node, activation: Node) -> Attributes:
    """Return the keys of a layer with those of its activation behind `with_activation`."""
    keys: dict[str, Attribute] = {}
    for key, value in host.attributes.items():
        keys[key] = activation.attributes["method"] if key == "with_activation" else value
        if key == "with_activation":
            keys |= {other: value for other, value in activation.attributes.items() if other != "method"}
    return Attributes(keys)


def fuse(layers: Layers) -> None:
    """RELU, RELU6 and LEAKYRELU go into the layer that nothing else reads, through a Transpose too.

    Add, Sub and Mul of unequal shapes take RELU only. Behind a function whose layer has no place for them the Parser
    loses them (back_passes.py, fuse_relu): here they go behind SIGMOID, where they change nothing, and by `faults`.
    """
    for node in list(layers.nodes.values()):
        method = node.attributes.get("method")
        if node.operator != "activation" or method not in RECTIFIERS or node.name not in layers.nodes:
            continue
        before = layers.writer(node.inputs[0])
        host = before
        if before is not None and before.operator == "transpose" and layers.uses(before.outputs[0]) == 1:
            host = layers.writer(before.inputs[0])
        if host is None or before is None or layers.uses(host.outputs[0]) != 1:
            continue
        if loses_rectifier(host) and (layers.faults or host.attributes["method"] == "SIGMOID"):
            layers.remove(node.name)
            layers.redirect(node.outputs[0], node.inputs[0])
            continue
        if not _takes(host, str(method)):
            continue
        layers.remove(node.name)
        if before is host:
            layers.put(replace(host, attributes=_fused(host, node), outputs=node.outputs))
        else:
            layers.put(replace(host, attributes=_fused(host, node)))
            layers.put(replace(before, outputs=node.outputs))
    layers.prune()
