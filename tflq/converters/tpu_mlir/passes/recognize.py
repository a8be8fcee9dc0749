"""Operators that TFLite's converter has taken apart, and whose parts TPU-MLIR would fuse otherwise or wrongly."""

from __future__ import annotations

import numpy as np

from tflq.converters.passes.rewrite import constant
from tflq.converters.tpu_mlir.passes.forms import reduced_axes
from tflq.graph import Array, Node
from tflq.graph.rewriting import Constant, GraphEditor, Match, Op, Value, op, replace_root, rewrite

_X, _GAMMA, _BETA = Value("x"), Constant("gamma", single=False), Constant("beta", single=False)


def _normalizations() -> tuple[Op, ...]:
    """Return the forms of a layer normalization, the longest first; Keras writes the first."""
    mean = op("mean", _X, name="mean", shared=True)
    variance = op("mean", op("squared_difference", _X, mean, name="square"), name="variance")
    inverse = op("rsqrt", op("add", variance, Constant("epsilon", single=False)), shared=True)
    centered = op("mul", op("sub", _X, mean), inverse)
    scale = op("mul", inverse, _GAMMA, shared=True, optional=True)
    return (
        op("add", op("mul", _X, scale), op("sub", _BETA, op("mul", mean, scale))),
        op("add", op("mul", _X, scale), op("add", op("mul", op("neg", mean), scale), _BETA, optional=True)),
        op("add", op("mul", centered, _GAMMA, optional=True), _BETA),
        op("mul", centered, _GAMMA),
        centered,
    )


def recognize_prelu(editor: GraphEditor) -> None:
    """Replace relu(x) + c * -relu(-x) by PRELU; TPU-MLIR would lose the inner rectifier."""
    negative = op("mul", op("neg", op("relu", op("neg", _X))), Constant("slopes", single=False))
    rewrite(editor, op("add", op("relu", _X), negative), lambda _, match: replace_root(match, "prelu", "x", "slopes"))


def recognize_layer_normalization(editor: GraphEditor) -> None:
    """Replace (x - m) / sqrt(v + eps) * gamma + beta over the last axis by `layer_normalization`.

    m and v are mean and variance of each row; Keras writes x * s + (beta - m * s) with s = gamma / sqrt(v + eps).
    """
    for pattern in _normalizations():
        rewrite(editor, pattern, _normalize)


def _normalize(editor: GraphEditor, match: Match) -> Node | None:
    shape, epsilon = editor.shape(match.values["x"]), match.constants["epsilon"].astype(np.float32).reshape(-1)
    axes = {reduced_axes(editor, match.nodes[name]) for name in ("mean", "variance")}
    is_ordered = match.nodes["square"].inputs[0] == match.values["x"]
    if axes != {(len(shape) - 1,)} or not is_ordered or not epsilon.size or np.any(epsilon != epsilon[0]):
        return None
    given = [match.constants.get(name, np.float32(default)) for name, default in (("gamma", 1), ("beta", 0))]
    if not match.is_closed(editor) or not all(_is_row(value, shape[-1]) for value in given):
        return None
    for name, value in zip(("gamma", "beta"), given, strict=True):
        row = np.broadcast_to(value.astype(np.float32).reshape(-1), shape[-1:]).copy()
        match.values[name] = editor.add_tensor(constant(f"{match.root.name}_{name}", row))
    return replace_root(match, "layer_normalization", "x", "gamma", "beta", epsilon=float(epsilon[0]))


def _is_row(value: Array, channels: int) -> bool:
    return value.size == 1 or value.size == value.shape[-1] == channels
