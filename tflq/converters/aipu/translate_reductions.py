"""TFLite's reductions, choices of extremes and box suppression -> Compass's layers (docs/aipu.md, 5)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.aipu.fusions import Fusion
from tflq.converters.aipu.translate_others import Rule
from tflq.converters.aipu.translation import Translation, as_written
from tflq.graph import Attributes, Node
from tflq.graph.attributes import Attribute

_REDUCTIONS = {
    "mean": "MEAN",
    "reduce_all": "ALL",
    "reduce_any": "ANY",
    "reduce_max": "MAX",
    "reduce_min": "MIN",
    "reduce_prod": "PROD",
    "sum": "SUM",
}
IMAGE_SIZE = 300
"""What the Parser writes as width and height of an image that the model does not name."""
_EPSILON = float(np.finfo(np.float32).eps)


def _reduce(work: Translation, node: Node) -> None:
    """Reduce keeps its axes; a Reshape takes them off. A mean over both axes of an image is a pool."""
    shape = work.shape(node.inputs[0])
    axes = tuple(sorted(a % len(shape) for a in work.numbers(node, 1)))
    keys: dict[str, Attribute] = {"axis": axes, "method": _REDUCTIONS[node.operator]}
    operator = "reduce"
    if node.operator == "mean" and len(shape) == 4 and axes == (1, 2):
        operator, keys = "pooling", _whole_image(shape)
    _without_axes(work, node, operator, keys, axes)


def _extreme(work: Translation, node: Node) -> None:
    axis = work.numbers(node, 1)[0] % len(work.shape(node.inputs[0]))
    method = "MAX" if node.operator == "arg_max" else "MIN"
    keys: dict[str, Attribute] = {"axis": axis, "method": method, "select_last_index": False}
    _without_axes(work, node, "arg_min_max", keys, (axis,))


def _without_axes(
    work: Translation, node: Node, operator: str, keys: dict[str, Attribute], axes: tuple[int, ...]
) -> None:
    """Add a layer that keeps its axes with length 1, and the Reshape that takes them off where the source has none."""
    kept = tuple(1 if a in axes else n for a, n in enumerate(work.shape(node.inputs[0])))
    x, (t,) = work.operand(node.inputs[0]), node.outputs
    if work.shape(t) == kept:
        work.add(node, operator, (x,), node.outputs, keys)
    else:
        work.reshape(node, work.add_between(node, operator, (x,), kept, t, keys), t, "_post_reshape")


def _whole_image(shape: tuple[int, ...]) -> dict[str, Attribute]:
    window: dict[str, Attribute] = {"kernel_x": shape[2], "kernel_y": shape[1], "stride_x": 1, "stride_y": 1}
    window.update({f"pad_{side}": 0 for side in ("left", "right", "top", "bottom")})
    window.update(dilation_x=1, dilation_y=1, method="AVG", ceil_mode=False, count_include_pad=False)
    return window


def moments(work: Translation, fusion: Fusion) -> None:
    """Add Moments for the mean and the mean of the squared differences.

    The Parser splits the squared difference into Sub and a square; a Sub of the same operands is then that one.
    """
    first, difference, last = (work.source.nodes[n] for n in fusion.nodes)
    for node in work.source.nodes:
        if node.operator == "sub" and node.inputs == difference.inputs:
            work.rename(node.outputs[0], difference.outputs[0])
    rank = len(work.shape(first.inputs[0]))
    axes = tuple(a % rank for a in work.numbers(first, 1))
    outputs = (*first.outputs, *last.outputs)
    work.add(first, "moments", (work.operand(first.inputs[0]),), outputs, {"axis": axes, "keepdims": True})


def _cumsum(work: Translation, node: Node) -> None:
    keys: dict[str, Attribute] = {
        "axis": work.numbers(node, 1)[0] % len(work.shape(node.inputs[0])),
        "method": "SUM",
        "exclusive": node.attributes.boolean("exclusive", False),
        "reverse": node.attributes.boolean("reverse", False),
    }
    work.append(node, "cumulate", {}, Attributes(keys))


def _one_hot(work: Translation, node: Node) -> None:
    on, off = (float(np.asarray(work.source.tensors[t].data).reshape(-1)[0]) for t in node.inputs[2:4])
    rank = len(work.shape(node.outputs[0]))
    keys: dict[str, Attribute] = {
        "axis": node.attributes.integer("axis", -1) % rank,
        "values": (off, on),
        "depth": work.numbers(node, 1)[0],
    }
    work.append(node, "one_hot", {}, Attributes(keys))


def _normalisation(work: Translation, node: Node) -> None:
    keys: dict[str, Attribute] = {"axis": (len(work.shape(node.inputs[0])) - 1,), "method": "L2", "epsilon": 1e-06}
    work.append(node, "normalization", {}, Attributes(keys))


def _segments(work: Translation, node: Node) -> None:
    """The output has as many rows as there are segments, which the file's shape may not say."""
    (t,) = node.outputs
    count = work.numbers(node, 1)[-1] + 1
    top = replace(work.top(t), shape=(count, *work.shape(t)[1:]))
    inputs = [work.operand(i) for i in node.inputs]
    (work.places[t],) = work.layer(node, work.name_of(t), "segment_reduce", inputs, (top,), {"method": "SUM"})


def _top_k(work: Translation, node: Node) -> None:
    keys: dict[str, Attribute] = {
        "axis": len(work.shape(node.inputs[0])) - 1,
        "k": work.numbers(node, 1)[0],
        "sorted": True,
        "largest": True,
        "select_index": "first",
    }
    work.append(node, "top_k", {}, Attributes(keys))


def _lrn(work: Translation, node: Node) -> None:
    """Size 2 radius + 1, alpha times size. The mean square is at most the largest square, where no run says more."""
    size = 2 * node.attributes.integer("radius", 0) + 1
    keys: dict[str, Attribute] = {
        "method": "ACROSS_CHANNELS",
        "size": size,
        "bias": as_written(node.attributes.real("bias", 0.0)),
        "alpha": as_written(node.attributes.real("alpha", 0.0) * size),
        "beta": as_written(node.attributes.real("beta", 0.0)),
    }
    work.append(node, "lrn", {}, Attributes(keys))
    limits = _limits(work, node.inputs[0])
    work.add_hidden({"square_sum": None if limits is None else (0.0, max(v * v for v in limits))})


def _pow(work: Translation, node: Node) -> None:
    """The exponent is repeated to the shape of the base. Bounds of log|x| and p log|x|, where no run says more."""
    work.add(node, "pow", work.repeated(node, node.outputs), node.outputs)
    x, p, y = (_limits(work, t) for t in (*node.inputs, *node.outputs))
    bounds: dict[str, tuple[float, float] | None] = dict.fromkeys(("log_outputs", "power_outputs", "exp_outputs"))
    if x is not None and p is not None and y is not None:
        smallest = min(map(abs, x)) if x[0] * x[1] > 0 else 0.0
        logs = [float(np.log(v + _EPSILON)) for v in (smallest, max(map(abs, x)))]
        products = [a * b for a in logs for b in p]
        bounds = {
            "log_outputs": (logs[0], logs[1]),
            "power_outputs": (min(products), max(products)),
            "exp_outputs": (0.0, max(map(abs, y))),
        }
    work.add_hidden(bounds)


def _limits(work: Translation, t: int) -> tuple[float, float] | None:
    tensor = work.source.tensors[t]
    if tensor.data is not None:
        return float(np.min(tensor.data)), float(np.max(tensor.data))
    return None if tensor.range is None else (float(tensor.range.minimum.min()), float(tensor.range.maximum.max()))


def _suppression(work: Translation, node: Node) -> None:
    """NMS of one class. Boxes and scores get a batch axis by Reshapes, what is read of the results loses it."""
    name = work.name_of(node.outputs[0])
    inputs = []
    for t in node.inputs[:2]:
        shape = (1, *work.shape(t))
        keys: dict[str, Attribute] = {"shape": shape}
        inputs.append(work.add_between(node, "reshape", (work.operand(t),), shape, t, keys, "_post_reshape"))
    counts = {"box_num_per_class": work.shape(node.inputs[1])[0], "class_num": 1}
    constants = [work.layer_of_constant(k, np.array([[n]], np.int32)) for k, n in counts.items()]
    limit = work.numbers(node, 2)[0]
    boxes, indices = work.top(node.inputs[0]), work.top(node.outputs[0])
    tops = (
        replace(boxes, shape=(1, limit, 4), data=None),
        replace(indices, shape=(1, 1)),
        replace(work.top(node.inputs[1]), shape=(1, limit), data=None),
        replace(indices, shape=(1, limit)),
    )
    operands = (inputs[0], *constants, inputs[1])
    _, count, scores, kept = work.layer(node, name, "nms", operands, tops, _suppression_keys(work, node, limit))
    results = (kept, scores, count) if node.operator == "non_max_suppression_v5" else (kept, count)
    read = {t for other in work.source.nodes for t in other.inputs} | set(work.source.outputs)
    for source, t in zip(results, node.outputs, strict=True):
        if t in read:
            work.reshape(node, source, t, "_post_reshape")


def _suppression_keys(work: Translation, node: Node, limit: int) -> dict[str, Attribute]:
    reals = [as_written(np.asarray(work.source.tensors[t].data).reshape(-1)[0]) for t in node.inputs[3:]]
    sigma = reals[2] if len(reals) > 2 else 0.0
    return {
        "method": "GAUSSIAN" if sigma > 0 else "HARD",
        "image_width": IMAGE_SIZE,
        "image_height": IMAGE_SIZE,
        "center_point_box": 0,
        "max_output_size": limit,
        "iou_threshold": reals[0],
        "score_threshold": reals[1],
        "soft_nms_sigma": sigma,
    }


REDUCTIONS: dict[str, Rule] = {
    **dict.fromkeys(_REDUCTIONS, _reduce),
    **dict.fromkeys(("arg_max", "arg_min"), _extreme),
    **dict.fromkeys(("non_max_suppression_v4", "non_max_suppression_v5"), _suppression),
    "cumsum": _cumsum,
    "l2_normalization": _normalisation,
    "local_response_normalization": _lrn,
    "one_hot": _one_hot,
    "pow": _pow,
    "segment_sum": _segments,
    "topk_v2": _top_k,
}
