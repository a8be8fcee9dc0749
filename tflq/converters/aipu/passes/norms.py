"""Means, variances and what normalises by them: Moments, Reduce VARIANCE, LayerNorm."""

from __future__ import annotations

import numpy as np

from tflq.converters.aipu.passes.layers import Layers
from tflq.converters.aipu.passes.pattern import Match, Number, Op, Value, match, op
from tflq.converters.aipu.passes.reductions import axes_of
from tflq.graph import Node
from tflq.graph.attributes import Attribute

X = Value("x")


def _mean(x: Op | Value, name: str) -> Op:
    return op("reduce", x, name=name, shared=True, method="MEAN")


_MEAN = _mean(X, "mean")
_DIFFERENCE = op("sub", X, _MEAN, shared=True)
_VARIANCE = _mean(op("square", _DIFFERENCE, shared=True), "variance")
_ROOT = op("rsqrt", op("add", _VARIANCE, Number("epsilon"), shared=True), shared=True)


def _scaled(root: Op) -> Op:
    """X * root + (beta - mean * root)."""
    shift = op("sub", Number("beta", single=False), op("mul", _MEAN, root))
    return op("add", op("mul", X, root), shift)


_NORMS = (_scaled(_ROOT), _scaled(op("mul", _ROOT, Number("gamma", single=False), shared=True)))


def layer_norms(layers: Layers) -> None:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, written as a product and a sum: LayerNorm."""
    for pattern in _NORMS:
        for node in list(layers.nodes.values()):
            found = match(layers, node, pattern) if node.name in layers.nodes else None
            if found is not None:
                _normalised(layers, node, found)
        layers.prune()


def _normalised(layers: Layers, node: Node, found: Match) -> None:
    x, axes = found.values["x"], axes_of(found.nodes["mean"])
    shape = layers.shape(x)
    sizes = tuple(shape[a] for a in axes)
    own = {"weights": found.numbers.get("gamma", np.ones(1, np.float32)), "biases": found.numbers["beta"]}
    if axes_of(found.nodes["variance"]) != axes or axes != tuple(range(len(shape) - len(axes), len(shape))):
        return
    if any(data.size not in (1, int(np.prod(sizes))) for data in own.values()):
        return
    constants = {
        key: np.broadcast_to(data.reshape(-1), (int(np.prod(sizes)),)).reshape(sizes) for key, data in own.items()
    }
    epsilon = float(f"{np.float32(found.number('epsilon')):.12f}")
    layers.become(node, "layer_norm", (x,), {"axis": axes, "epsilon": epsilon}, constants)


def variances(layers: Layers) -> None:
    """The mean of squared differences from the mean over the same axes: Reduce VARIANCE."""
    for node in list(layers.nodes.values()):
        found = match(layers, node, _VARIANCE)
        if found and axes_of(found.nodes["mean"]) == axes_of(node):
            keys = dict(node.attributes.items()) | {"method": "VARIANCE"}
            layers.become(node, "reduce", (found.values["x"],), keys)
    layers.prune()


def moments(layers: Layers) -> None:
    """Mean and variance of the same values over the same axes: Moments, named as the mean."""
    for node in list(layers.nodes.values()):
        if node.operator != "reduce" or node.attributes["method"] != "MEAN" or node.name not in layers.nodes:
            continue
        twin = next((r for r in layers.readers(node.inputs[0]) if _is_variance(r, node)), None)
        if twin is None:
            continue
        layers.remove(twin.name)
        keys: dict[str, Attribute] = {"axis": axes_of(node), "keepdims": node.attributes.boolean("keepdims")}
        layers.become(node, "moments", node.inputs, keys, outputs=(*node.outputs, *twin.outputs))
    layers.prune()


def _is_variance(reader: Node, mean: Node) -> bool:
    is_one = reader.operator == "reduce" and reader.attributes["method"] == "VARIANCE"
    same_axes = is_one and axes_of(reader) == axes_of(mean)
    return same_axes and reader.attributes["keepdims"] == mean.attributes["keepdims"]


def softmaxes(layers: Layers) -> None:
    """exp(x) / sum(exp(x)): Softmax, named as the quotient."""
    pattern = op(
        "div",
        op("exp", X, name="exp", shared=True),
        op("reduce", op("exp", X, shared=True), name="sum", method="SUM", keepdims=True),
    )
    for node in list(layers.nodes.values()):
        found = match(layers, node, pattern)
        if found and len(axes := axes_of(found.nodes["sum"])) == 1:
            layers.become(node, "softmax", (found.values["x"],), {"axis": axes[0]})
    layers.prune()


def same_differences(layers: Layers) -> None:
    """Two differences of a value and its mean are one: the one that is squared, else the first."""
    seen: dict[tuple[int, ...], list[Node]] = {}
    for node in layers.nodes.values():
        mean = layers.writer(node.inputs[1]) if node.operator == "sub" else None
        if mean is not None and mean.operator == "reduce" and mean.inputs[0] == node.inputs[0]:
            seen.setdefault(node.inputs, []).append(node)
    for twins in seen.values():
        squared = [n for n in twins if any(r.operator == "square" for r in layers.readers(n.outputs[0]))]
        kept = (*squared, *twins)[0]
        for node in twins:
            if node is not kept:
                layers.remove(node.name)
                layers.redirect(node.outputs[0], kept.outputs[0])
    layers.prune()
