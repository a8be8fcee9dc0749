"""Operators that TFLite's converter has taken apart, and whose parts TPU-MLIR would fuse otherwise or wrongly."""

from __future__ import annotations

import numpy as np

from tflq.converters.passes.rewrite import constant
from tflq.converters.tpu_mlir.passes.forms import reduced_axes
from tflq.graph import Array, Node
from tflq.graph.rewriting import Constant, GraphEditor, Match, Value, op, replace_root, rewrite

_X, _GAMMA, _BETA = Value("x"), Constant("gamma", single=False), Constant("beta", single=False)
_PRELU = op(
    "add", op("relu", _X), op("mul", op("neg", op("relu", op("neg", _X))), Constant("slopes", single=False))
)  # fmt: skip

_MEAN = op("mean", _X, name="mean", shared=True)
_VARIANCE = op("mean", op("squared_difference", _X, _MEAN, name="square"), name="variance")
_INVERSE = op("rsqrt", op("add", _VARIANCE, Constant("epsilon", single=False)), shared=True)
_CENTERED = op("mul", op("sub", _X, _MEAN), _INVERSE)
_SCALE = op("mul", _INVERSE, _GAMMA, shared=True, optional=True)
_NORMALIZATIONS = (
    op("add", op("mul", _X, _SCALE), op("sub", _BETA, op("mul", _MEAN, _SCALE))),
    op("add", op("mul", _X, _SCALE), op("add", op("mul", op("neg", _MEAN), _SCALE), _BETA, optional=True)),
    op("add", op("mul", _CENTERED, _GAMMA, optional=True), _BETA),
    op("mul", _CENTERED, _GAMMA),
    _CENTERED,
)
"""Layer normalizations, the longest first; Keras writes the first."""


def recognize_prelu(editor: GraphEditor) -> None:
    """Replace relu(x) + c * -relu(-x) by PRELU; TPU-MLIR would lose the inner rectifier."""
    rewrite(editor, _PRELU, lambda _, match: replace_root(match, "prelu", "x", "slopes"))


def recognize_layer_normalization(editor: GraphEditor) -> None:
    """Replace (x - m) / sqrt(v + eps) * gamma + beta over the last axis by `layer_normalization`.

    m and v are mean and variance of each row; Keras writes x * s + (beta - m * s) with s = gamma / sqrt(v + eps).
    """
    for pattern in _NORMALIZATIONS:
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
