"""Means, sums and variances over axes, and the pools and norms that are written as these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.aipu.passes.activations import length_keys
from tflq.converters.aipu.passes.layers import Layers
from tflq.graph import Attributes, DType, Node, Range, Tensor
from tflq.graph.attributes import Attribute
from tflq.graph.rewriting import Constant, Match, Op, Value, find_matches, op

X = Value("x")


def window(height: int, width: int) -> dict[str, Attribute]:
    """Return the keys of an average over a whole image."""
    keys: dict[str, Attribute] = {"kernel_x": width, "kernel_y": height, "stride_x": 1, "stride_y": 1}
    keys.update({f"pad_{side}": 0 for side in ("left", "right", "top", "bottom")})
    keys.update(dilation_x=1, dilation_y=1, method="AVG", ceil_mode=False, count_include_pad=False)
    return keys


def pool_means(layers: Layers) -> None:
    """A mean over all axes but the first and the last, or all but the first two, is an average pool.

    Over all but the first two, the channels go last for it and come back. Values of three axes are images of one row.
    """
    for node in layers.nodes_of("reduce"):
        if node.attributes["method"] != "MEAN":
            continue
        shape, axes = layers.shape(node.inputs[0]), axes_of(node)
        rank = len(shape)
        is_last = axes == tuple(range(2, rank))
        if not 3 <= rank <= 4 or (axes != tuple(range(1, rank - 1)) and not is_last):
            continue
        kept = tuple(1 if a in axes else n for a, n in enumerate(shape))
        if is_last:
            perm = (0, *range(2, rank), 1)
            moved = tuple(shape[a] for a in perm)
            node = layers.insert_layer_before(node, 0, "transpose", "_post_transpose", moved, perm=perm)
            back = tuple(int(a) for a in np.argsort(perm))
            inner = tuple(kept[a] for a in perm)
            if layers.shape(node.outputs[0]) == kept:
                node = layers.insert_layer_after(node, "transpose", "_post_transpose", inner, perm=back)
            else:
                after = f"{node.name}_post_transpose_post_reshape"
                top = node.outputs[0]
                values = layers.reshaped(top, inner), layers.reshaped(top, kept)
                node = layers.change(node, outputs=values[:1])
                layers.add_layer(node, f"{node.name}_post_transpose", "transpose", values[:1], values[1], perm=back)
                layers.add_layer(node, after, "reshape", values[1:], top, shape=layers.shape(top))
            shape, kept = moved, inner
        else:
            node = _keep_axes(layers, node, kept)
        _pool(layers, node, shape, kept)


def _pool(layers: Layers, node: Node, shape: tuple[int, ...], kept: tuple[int, ...]) -> None:
    """Let a mean become a pool, of three axes between two Reshapes."""
    if len(shape) == 3:
        image = (shape[0], 1, *shape[1:])
        node = layers.insert_layer_before(node, 0, "reshape", "_post_reshape", image, shape=image)
        node = layers.insert_layer_after(node, "reshape", "_post_reshape", (kept[0], 1, *kept[1:]), shape=kept)
        shape = image
    layers.become(node, "pooling", node.inputs, window(shape[1], shape[2]))


def recognize_lengths(layers: Layers) -> None:
    """A sum of sizes is L1; the root of a sum of squares L2, and its reciprocal, too, where that is written as one.

    Squares that two roots read go into the first.
    """
    taken, squares_of_x = set[str](), op("square", X, name="square", shared=True)
    root = op({"sqrt", "rsqrt"}, op("reduce", squares_of_x, name="sum", shared=True, method="SUM"))
    for place in find_matches(layers, op("reduce", op("abs", X, shared=True), method="SUM")):
        layers.change(place.root, inputs=(place.values["x"],), method="L1")
    for place in find_matches(layers, root):
        node, square, sums = place.root, place.nodes["square"], place.nodes["sum"]
        if square.name in taken:
            continue
        taken.add(square.name)
        keys, limits = {**sums.attributes, "method": "L2"}, layers.tensors[sums.outputs[0]].range
        if node.operator == "rsqrt":
            known = None if limits is None else Range(np.sqrt(limits.minimum), np.sqrt(limits.maximum))
            top = layers.add_tensor(replace(layers.tensors[node.outputs[0]], range=known))
            layers.unstate(top)
            layers.add_layer(node, node.name.removesuffix("_sqrt"), "reciprocal", (top,), node.outputs[0])
            node = layers.become(node, "reduce", (place.values["x"],), keys, outputs=(top,))
        else:
            node = layers.become(node, "reduce", (place.values["x"],), keys)
        squares = layers.add_tensor(Tensor(f"{node.name}/power2_sum", (), DType.FLOAT32, range=limits))
        layers.unstate(squares)
        layers.replace(node, replace(node, intermediates=(squares,)))
    layers.remove_dead()


def recognize_l2_quotients(layers: Layers) -> None:
    """X / (L2 of x + epsilon): Normalization L2, named as the length."""
    length_of_x = op("reduce", X, name="length", method="L2", keepdims=True)
    for place in find_matches(layers, op("div", X, op("add", length_of_x, Constant("epsilon")))):
        length, keys = place.nodes["length"], length_keys(place, place.nodes["length"])
        layers.remove(place.root)
        layers.become(length, "normalization", (place.values["x"],), keys, outputs=place.root.outputs)
    layers.remove_dead()


def axes_of(node: Node) -> tuple[int, ...]:
    """Return the axes that a layer works over."""
    return tuple(int(a) for a in np.asarray(node.attributes["axis"]).reshape(-1))


def _keep_axes(layers: Layers, node: Node, kept: tuple[int, ...]) -> Node:
    """Let a layer write a shape that keeps its axes, with a Reshape after it if it wrote another one."""
    shape = layers.shape(node.outputs[0])
    return node if shape == kept else layers.insert_layer_after(node, "reshape", "_post_reshape", kept, shape=shape)


def keep_axes(layers: Layers) -> None:
    """ArgMinMax, Moments and Reduce keep their axes; a Reshape after each result removes them.

    Source: Compass Parser, back_passes.py, rename_argminmax, rename_moments, rename_reduce.
    """
    for node in sorted((node for node in layers.nodes if "keepdims" in node.attributes), key=_renaming_order):
        kept = tuple(1 if a in axes_of(node) else n for a, n in enumerate(layers.shape(node.inputs[0])))
        if node.operator == "moments":
            node = _keep_axes_of_moments(layers, node, kept)
        else:
            changed = _keep_axes(layers, node, kept)
            if changed.outputs != node.outputs and node.operator == "reduce":
                layers.mark_shapeless(node.outputs[0])
            node = changed
            keys = {key: value for key, value in node.attributes.items() if key != "keepdims"}
            layers.replace(node, replace(node, attributes=Attributes(keys)))


_RENAMED = ("ALL", "ANY", "MEAN", "MIN", "MAX", "PROD", "SUM", "L1", "L2", "VARIANCE")
"""Methods of Reduce in the order in which the Parser renames them."""


def _renaming_order(node: Node) -> tuple[int, str]:
    method = node.attributes.get("method")
    if node.operator == "reduce" and method in _RENAMED:
        return 2 + _RENAMED.index(str(method)), node.name
    return int(node.operator == "moments"), node.name


def _keep_axes_of_moments(layers: Layers, node: Node, kept: tuple[int, ...]) -> Node:
    """Let Moments keep its axes (Compass Parser, back_passes.py, rename_moments)."""
    for port, t in enumerate(node.outputs):
        shape = layers.shape(t)
        if shape != kept and layers.uses(t):
            suffix = f"_post_reshape_{port}" if port else "_post_reshape"
            node = layers.insert_layer_after(node, "reshape", suffix, kept, port=port, shape=shape)
            layers.mark_shapeless(t)
        elif shape != kept:
            layers.tensors[t] = replace(layers.tensors[t], shape=kept)
    return layers.change(node, keepdims=True)


def _mean(x: Op | Value, name: str) -> Op:
    return op("reduce", x, name=name, shared=True, method="MEAN")


_MEAN = _mean(X, "mean")
_DIFFERENCE = op("sub", X, _MEAN, name="difference", shared=True)
_VARIANCE = _mean(op("square", _DIFFERENCE, name="square", shared=True), "variance")


def _normalize(has_gamma: bool) -> Op:
    """X * root + (beta - mean * root), with root = gamma / sqrt(variance + epsilon)."""
    root = op("rsqrt", op("add", _VARIANCE, Constant("epsilon"), shared=True), shared=True)
    if has_gamma:
        root = op("mul", root, Constant("gamma", single=False), shared=True)
    shift = op("sub", Constant("beta", single=False), op("mul", _MEAN, root))
    return op("add", op("mul", X, root), shift)


_SQUARED_BY_MUL = op("mul", X, X, shared=True)
_RMS = op(
    "mul", X, op("rsqrt", op("add", _mean(_SQUARED_BY_MUL, "mean"), Constant("epsilon"), shared=True), shared=True)
)
_ROOT = op("rsqrt", op("add", _VARIANCE, Constant("epsilon"), shared=True), shared=True)
_MVN = op("add", op("mul", X, _ROOT), op("mul", op("negative", _MEAN, shared=True), _ROOT))
_UNMADE = "the Parser writes {0}, for which tflq has no layer; tflq writes its parts, whose integers differ"


def name_root_norms(layers: Layers) -> None:
    """Name x * rsqrt(mean(x * x) + epsilon), which the Parser makes RMSNorm."""
    for place in find_matches(layers, _RMS):
        layers.departures[place.root.name] = _UNMADE.format("RMSNorm")


def name_mean_variance_norms(layers: Layers) -> None:
    """Name (x - mean) * rsqrt(variance + epsilon) without factor and shift, which the Parser makes MVN."""
    for place in find_matches(layers, _MVN):
        layers.departures[place.root.name] = _UNMADE.format("MVN")


def recognize_layer_norms(layers: Layers) -> None:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, written as a product and a sum: LayerNorm."""
    for pattern in map(_normalize, (False, True)):
        for place in find_matches(layers, pattern):
            _become_layer_norm(layers, place)
        layers.remove_dead()


def _become_layer_norm(layers: Layers, place: Match) -> None:
    x, axes = place.values["x"], axes_of(place.nodes["mean"])
    shape = layers.shape(x)
    sizes = tuple(shape[a] for a in axes)
    own = {"weights": place.constants.get("gamma", np.ones(1, np.float32)), "biases": place.constants["beta"]}
    if axes_of(place.nodes["variance"]) != axes or axes != tuple(range(len(shape) - len(axes), len(shape))):
        return
    if any(data.size not in (1, int(np.prod(sizes))) for data in own.values()):
        return
    constants = {
        key: np.broadcast_to(data.reshape(-1), (int(np.prod(sizes)),)).reshape(sizes) for key, data in own.items()
    }
    epsilon = float(f"{np.float32(place.number('epsilon')):.12f}")
    layers.become(place.root, "layer_norm", (x,), {"axis": axes, "epsilon": epsilon}, constants)


def duplicate_means(layers: Layers) -> None:
    """Copy the first mean of a difference of two, if its name precedes that of the second one.

    The Parser searches the mean of a variance among the operands of the difference. If the value x is itself a mean and
    its name is the smaller one, x is taken for the mean: it is copied, and no variance is recognized. Example: global
    average pool, then a layer normalization.

    Source: Compass Parser, middle_passes.py, duplicate_moments_mean; graph/pattern_match.py.
    """
    for place in find_matches(layers, _VARIANCE):
        x, mean = layers.writer_of(place.values["x"], "reduce"), place.nodes["mean"]
        difference, square = place.nodes["difference"], place.nodes["square"]
        if x is None or x.attributes["method"] != "MEAN" or mean.name < x.name:
            continue
        if layers.uses(difference.outputs[0]) == 1 and layers.uses(square.outputs[0]) == 1:
            copy = layers.reshaped(x.outputs[0], layers.shape(x.outputs[0]))
            layers.add_layer(x, f"{x.name}_copy", "reduce", x.inputs, copy, **x.attributes)
            position = difference.inputs.index(x.outputs[0])
            layers.set_input(layers.node(difference.name), position, copy)


def recognize_variances(layers: Layers) -> None:
    """The mean of squared differences from the mean over the same axes: Reduce VARIANCE."""
    for place in find_matches(layers, _VARIANCE):
        if axes_of(place.nodes["mean"]) == axes_of(place.root):
            layers.change(place.root, inputs=(place.values["x"],), method="VARIANCE")
    layers.remove_dead()


def recognize_moments(layers: Layers) -> None:
    """Mean and variance of the same values over the same axes: Moments, named as the mean."""
    for node in layers.nodes_of("reduce"):
        if node.attributes["method"] != "MEAN" or node not in layers:
            continue
        twin = next((r for r in layers.readers(node.inputs[0]) if _is_variance(r, node)), None)
        if twin is None:
            continue
        layers.remove(twin)
        keys: dict[str, Attribute] = {"axis": axes_of(node), "keepdims": node.attributes.boolean("keepdims")}
        layers.become(node, "moments", node.inputs, keys, outputs=(*node.outputs, *twin.outputs))
    layers.remove_dead()


def _is_variance(reader: Node, mean: Node) -> bool:
    is_one = reader.operator == "reduce" and reader.attributes["method"] == "VARIANCE"
    same_axes = is_one and axes_of(reader) == axes_of(mean)
    return same_axes and reader.attributes["keepdims"] == mean.attributes["keepdims"]


def recognize_softmaxes(layers: Layers) -> None:
    """exp(x) / sum(exp(x)): Softmax, named as the quotient."""
    pattern = op(
        "div",
        op("exp", X, name="exp", shared=True),
        op("reduce", op("exp", X, shared=True), name="sum", method="SUM", keepdims=True),
    )
    for place in find_matches(layers, pattern):
        axes = axes_of(place.nodes["sum"])
        if len(axes) == 1:
            layers.become(place.root, "softmax", (place.values["x"],), {"axis": axes[0]})
    layers.remove_dead()


def merge_equal_differences(layers: Layers) -> None:
    """Two differences of a value and its mean are one, the first by name.

    Source: Compass Parser, middle_passes.py, deduplicate_mean_sub.
    """
    seen: dict[tuple[int, ...], Node] = {}
    for node in layers.nodes_of("sub"):
        mean = layers.writer_of(node.inputs[1], "reduce")
        if mean is not None and mean.inputs[0] == node.inputs[0]:
            kept = seen.setdefault(node.inputs, node)
            if kept is not node:
                layers.unite(node, kept)
    layers.remove_dead()
