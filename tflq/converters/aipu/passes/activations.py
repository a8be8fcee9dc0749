"""Activations that are written as sums and products, and those that go into the layer in front of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.passes.layers import Layers
from tflq.graph import Attributes, Node, Range
from tflq.graph.attributes import Attribute
from tflq.graph.operators import Trait, has_trait
from tflq.graph.rewriting import Constant, Match, Op, Value, find_matches, is_near, op

RELU, RELU6, LEAKY = "RELU", "RELU6", "LEAKYRELU"
X = Value("x")


def as_written(value: float) -> float:
    """Return a number as the Parser leaves it, which writes six decimals."""
    return float(f"{value:f}")


def _act(x: Op | Value, method: str, shared: bool = False) -> Op:
    return op("activation", x, shared=shared, method=method)


def _shifted(shared: bool = False) -> Op:
    """relu6(x + 3)."""
    return _act(op("add", X, Constant("three", (3.0,)), shared=shared), RELU6, shared)


_SIXTH = (1 / 6,)

Keys = Callable[[Match], dict[str, Attribute] | None]


def _always(**keys: Attribute) -> Keys:
    return lambda _place: keys


def _swish(place: Match) -> dict[str, Attribute]:
    return {"method": "SWISH", "alpha": as_written(place.number("alpha"))}


def _hard_sigmoid(place: Match) -> dict[str, Attribute] | None:
    """max(low, min(high, x + b)) * c, where c is 1 / high."""
    limits, factor = place.nodes["clip"].attributes, place.number("factor")
    low, high = (0.0, 6.0) if limits["method"] == RELU6 else (limits.get("clip_min"), limits.get("clip_max"))
    if not isinstance(low, float) or not isinstance(high, float) or not is_near(1 / np.float32(factor), high):
        return None
    largest = 1 / factor
    keys = {"alpha": factor, "beta": place.number("offset") / largest, "clip_min": low / largest, "clip_max": 1.0}
    return {"method": "HARDSIGMOID", **{key: as_written(value) for key, value in keys.items()}}


def _forms() -> Sequence[tuple[Op, Keys]]:
    """Return the written-out forms and the keys of the Activation that each becomes, in the Parser's order."""
    limited = op("activation", op("add", X, Constant("offset")), name="clip", shared=True)
    return (
        (op("mul", X, _act(X, "SIGMOID")), _always(method="SILU")),
        (op("mul", X, _act(op("mul", X, Constant("alpha")), "SIGMOID")), _swish),
        (op("mul", op("mul", X, _shifted()), Constant("sixth", _SIXTH)), _always(method="HARDSWISH")),
        (op("mul", X, op("mul", _shifted(), Constant("sixth", _SIXTH))), _always(method="HARDSWISH")),
        (
            op("mul", _shifted(shared=True), Constant("sixth", (*_SIXTH, 0.16667))),
            _always(method="HARDSIGMOID", alpha=as_written(1 / 6), beta=0.5, clip_min=0.0, clip_max=1.0),
        ),
        (op("mul", limited, Constant("factor")), _hard_sigmoid),
        (
            op("log", op("add", op("exp", X, shared=True), Constant("one", (1.0,)), shared=True)),
            _always(method="SOFTPLUS"),
        ),
        (op("mul", X, _act(_act(X, "SOFTPLUS"), "TANH")), _always(method="MISH")),
    )


def recognize_activations(layers: Layers) -> None:
    """Let written-out activations become Activation layers, named as their last one."""
    for pattern, keys_of in _forms():
        for place in find_matches(layers, pattern):
            keys = keys_of(place)
            if keys:
                layers.become(place.root, "activation", (place.values["x"],), keys)
        layers.remove_dead()


def length_keys(place: Match, length: Node) -> dict[str, Attribute]:
    """Return the keys of Normalization L2 from the layer that reduces over its axes and the constant `epsilon`."""
    epsilon = float(f"{place.number('epsilon'):.8e}")
    return {"axis": length.attributes["axis"], "method": "L2", "epsilon": epsilon}


def recognize_l2_products(layers: Layers) -> None:
    """X * rsqrt(max(sum(x^2), epsilon)): Normalization L2."""
    length = op("reduce", op("square", X), name="sum", method="SUM", keepdims=True)
    for place in find_matches(layers, op("mul", X, op("rsqrt", op("maximum", length, Constant("epsilon"))))):
        layers.become(place.root, "normalization", (place.values["x"],), length_keys(place, place.nodes["sum"]))
    layers.remove_dead()


def limit_sigmoids(layers: Layers) -> None:
    """A SIGMOID without a range that is read once has 0..1, as the Parser states it of a .tflite."""
    full = Range(np.zeros(1, np.float32), np.ones(1, np.float32))
    for node in layers.nodes:
        (t, *_) = node.outputs
        is_free = layers.tensors[t].range is None and layers.uses(t) == 1
        if node.attributes.get("method") == "SIGMOID" and is_free:
            layers.tensors[t] = replace(layers.tensors[t], range=full)


def clip_relu(layers: Layers) -> None:
    """A minimum by a number behind RELU: CLIP from 0, which up to 6 is RELU6."""
    pattern = op("minimum", op("activation", X, method=RELU, shared=True), Constant("high"))
    for place in find_matches(layers, pattern):
        high = place.number("high")
        if high >= 0:
            layers.become(place.root, "activation", (place.values["x"],), _clipped(0.0, high))
    layers.remove_dead()


def clip_pairs(layers: Layers) -> None:
    """Minimum and maximum by numbers, one behind the other: CLIP, named as the last."""
    for first, last in (("minimum", "maximum"), ("maximum", "minimum")):
        pattern = op(last, op(first, X, Constant(first)), Constant(last))
        for place in find_matches(layers, pattern):
            keys = _clipped(place.number("maximum"), place.number("minimum"))
            layers.become(place.root, "activation", (place.values["x"],), keys)
            layers.limits_of_pairs.add(place.root.name)
    layers.remove_dead()


def _clipped(low: float, high: float) -> dict[str, Attribute]:
    if is_near(low, 0.0) and is_near(high, 6.0):
        return {"method": RELU6}
    return {"method": "CLIP", "clip_min": as_written(low), "clip_max": as_written(high)}


_HOSTS = ("convolution", "depthwise_conv", "conv_transpose", "fully_connected", "convolution_3d", "eltwise")
RECTIFIERS = (RELU, RELU6, LEAKY)
"""Those that go into the layer in front."""


_LOSE = ("ELU", "SIGMOID", "TANH")


def loses_rectifier(host: Node) -> bool:
    """Whether the Parser takes a rectifier into a layer that is a function without one."""
    return host.operator == "activation" and host.attributes.get("method") in _LOSE


def _takes(host: Node, method: str) -> bool:
    is_host = host.operator in _HOSTS or (has_trait(host, Trait.AFFINE) and method == RELU)
    return is_host and host.attributes.get("with_activation") == "NONE"


def _fused(host: Node, activation: Node) -> Attributes:
    """Return the keys of a layer with those of its activation behind `with_activation`."""
    keys: dict[str, Attribute] = {}
    for key, value in host.attributes.items():
        keys[key] = activation.attributes["method"] if key == "with_activation" else value
        if key == "with_activation":
            keys |= {other: value for other, value in activation.attributes.items() if other != "method"}
    return Attributes(keys)


def fuse_rectifiers(layers: Layers) -> None:
    """RELU, RELU6 and LEAKYRELU go into the layer that nothing else reads, through a Transpose too.

    Add, Sub and Mul of unequal shapes take RELU only. Behind a function whose layer has no place for them the Parser
    loses them (back_passes.py, fuse_relu): here they go behind SIGMOID, where they change nothing, and by `faults`.
    """
    for node in layers.nodes_of("activation"):
        method = node.attributes.get("method")
        if method not in RECTIFIERS or node not in layers:
            continue
        before = layers.writer(node.inputs[0])
        moved = layers.writer_of(node.inputs[0], "transpose") if layers.uses(node.inputs[0]) == 1 else None
        host = before if moved is None else layers.writer(moved.inputs[0])
        if host is None or before is None or layers.uses(host.outputs[0]) != 1:
            continue
        if loses_rectifier(host) and (layers.faults or host.attributes["method"] == "SIGMOID"):
            layers.bypass(node)
            continue
        if not _takes(host, str(method)):
            continue
        layers.remove(node)
        if before is host:
            layers.replace(host, replace(host, attributes=_fused(host, node), outputs=node.outputs))
        else:
            layers.replace(host, replace(host, attributes=_fused(host, node)))
            layers.change(before, outputs=node.outputs)
    layers.remove_dead()
