"""Which function explains which kernel: each arithmetic brings its table; operators that only move data share one."""

from __future__ import annotations

from tflq.analysis.explain import aipu, floating, gap9, moves, nnie, openvino, tflite, tpu_mlir
from tflq.analysis.explain.family import Families, Family
from tflq.errors import UnsupportedError
from tflq.graph import Node
from tflq.interpreter.kernels.gap9.softmax import SoftmaxParams
from tflq.interpreter.kernels.tflite.concatenation import RescaledConcatenation
from tflq.interpreter.layers.linear import ConvolutionLayer, ProductLayer
from tflq.interpreter.layers.pooling import AveragePool, Mean
from tflq.interpreter.registry import kernel, kernel_name

_FAMILIES: Families = {}
_OWN: dict[tuple[str, type], Family] = {}
"""Of classes that several arithmetics share."""
for _arithmetic in (tflite, floating, gap9, aipu, nnie, openvino, tpu_mlir):
    _FAMILIES.update(_arithmetic.FAMILIES)
    _OWN.update({(family.arithmetic, kind): family for kind, family in _arithmetic.FAMILIES.items()})

_MOVERS = (
    "batch_to_space_nd",
    "concatenation",
    "depth_to_space",
    "expand_dims",
    "gather",
    "mirror_pad",
    "pack",
    "pad",
    "padv2",
    "reshape",
    "resize_nearest_neighbor",
    "reverse_v2",
    "slice",
    "space_to_batch_nd",
    "space_to_depth",
    "split",
    "split_v",
    "squeeze",
    "strided_slice",
    "tile",
    "transpose",
    "unpack",
)
_MOVE = Family(", ".join(_MOVERS), "every arithmetic", moves.explain_move, "the operator copies elements")


def family_of(node: Node) -> Family:
    """Return the family that explains a lowered node.

    Raises:
        UnsupportedError: none does; the message lists those that exist.
    """
    if node.operator in _MOVERS and _only_moves(node):
        return _MOVE
    kind = _kind(node.params)
    found = _OWN.get((node.arithmetic or "", kind), _FAMILIES.get(kind))
    if found is None or (isinstance(node.params, SoftmaxParams) and node.params.exponentials is None):
        raise UnsupportedError(
            f"'{node.name}' ({node.operator} in arithmetic '{node.arithmetic}') cannot be explained; "
            f"explained are {_known(node.arithmetic or '')}"
        )
    return found


def _kind(params: object) -> type:
    """Return the class that tells who explains: of a shared layer that of its arithmetic's part."""
    if isinstance(params, (ConvolutionLayer, ProductLayer)):
        return type(params.filter)
    return type(params.average) if isinstance(params, (AveragePool, Mean)) else type(params)


def _only_moves(node: Node) -> bool:
    if isinstance(node.params, RescaledConcatenation):
        return all(table is None for table in node.params.tables)
    return kernel(node.arithmetic or "", kernel_name(node)).module.startswith("tflq.interpreter.kernels.move.")


def _known(arithmetic: str) -> str:
    own = [family.operators for family in _OWN.values() if family.arithmetic == arithmetic]
    return f"in {arithmetic}: {', '.join(own)}; in {_MOVE.arithmetic}: {_MOVE.operators}"
