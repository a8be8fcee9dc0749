"""TPU-MLIR's front end: its rewrites of a float network in their order, before it reads the calibration table.

Later code may assume that the graph is the tool's: names, readers and ranges are those of its tensors. The page
docs/rules/tpu_mlir_front_end.md is made from this table (scripts/worked_layers).
"""

from __future__ import annotations

from tflq.converters.passes.take_in import fold_padding, fuse_activations
from tflq.converters.tpu_mlir.check import FUSING, RECTIFIERS
from tflq.converters.tpu_mlir.passes.canonical import (
    align_sums,
    flatten_concatenations,
    fuse_right_transpose,
    merge_equal_nodes,
    remove_idle_moves,
    split_products,
)
from tflq.converters.tpu_mlir.passes.fusions import (
    fold_bias,
    fold_constants,
    fold_crops,
    fold_factors,
    fuse_silu,
    fuse_softsign,
    merge_pointwise,
)
from tflq.graph.rewriting import GraphEditor, Pass

_FILTERS = "docs/rules/tpu_mlir.md#convolutions-and-fully-connected-layers"
_FORMS = "docs/rules/tpu_mlir_front_end.md#the-rewrites-in-order"


_RECORDED = "recorded networks of the tool (tests/data), random networks of scripts/peer tpu-mlir"
FRONT_END: tuple[Pass[GraphEditor], ...] = (
    Pass(
        "remove_idle_moves",
        remove_idle_moves,
        "a reshape to the same shape and a transposition that keeps the order are removed",
        _FORMS,
        "sweep moves",
    ),
    Pass(
        "align_sums",
        align_sums,
        "ADD reshapes an operand of a lower rank; the two reshapes in a row are one",
        _FORMS,
        "sweep moves",
    ),
    Pass(
        "merge_equal_nodes",
        merge_equal_nodes,
        "equal layers on the same operands are one, with the name and the range of the first",
        _FORMS,
        "sweep equal",
    ),
    Pass(
        "flatten_concatenations",
        flatten_concatenations,
        "a concatenation that only another one along the same axis reads is part of it",
        _FORMS,
        "sweep joined",
    ),
    Pass(
        "fuse_right_transpose",
        fuse_right_transpose,
        "a product of two activations transposes its right operand",
        _FORMS,
        "sweep products",
    ),
    Pass("fuse_silu", fuse_silu, "x * logistic(x) is one table", _FILTERS, _RECORDED),
    Pass("fuse_softsign", fuse_softsign, "x / (1 + |x|) is one table", _FILTERS, _RECORDED),
    Pass("merge_pointwise", merge_pointwise, "two convolutions of 1x1 in a row are one", _FILTERS, _RECORDED),
    Pass(
        "fold_constants",
        fold_constants,
        "one number a channel is folded into a convolution, or becomes one of 1x1",
        _FILTERS,
        _RECORDED,
    ),
    Pass(
        "fuse_activations",
        lambda editor: fuse_activations(editor, FUSING, RECTIFIERS),
        "the clamp of a rectifier is the saturation of an unsigned output",
        _FILTERS,
        _RECORDED,
    ),
    Pass(
        "fold_bias",
        fold_bias,
        "a sum after a reshaped product is its bias, if its reader reshapes it back",
        _FILTERS,
        _RECORDED,
    ),
    Pass(
        "fold_crops",
        fold_crops,
        "the padding of a convolution that a slice cuts off is not computed",
        _FILTERS,
        _RECORDED,
    ),
    Pass(
        "fold_padding",
        lambda editor: fold_padding(editor, ("max_pool_2d",)),
        "zeros before a pool of maxima are its padding",
        _FILTERS,
        _RECORDED,
    ),
    Pass(
        "fold_factors",
        fold_factors,
        "a positive factor after a rectified convolution is folded into its weights",
        _FILTERS,
        _RECORDED,
    ),
    Pass(
        "split_products",
        split_products,
        "a product with constant weights that slices of its last axis partition is one product for each slice",
        _FORMS,
        "sweep products",
    ),
)
"""The rewrites in order."""
