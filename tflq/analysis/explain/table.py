"""Which function explains which kernel: by the integers that the kernel's `lower` decides."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.analysis.explain import gap9_filters, gap9_others, moves, tflite_elementwise, tflite_filters, tflite_rows
from tflq.analysis.explain.steps import Explain
from tflq.errors import UnsupportedError
from tflq.graph import Node
from tflq.interpreter.kernels.gap9.average_pool_2d import AveragePoolIntegers
from tflq.interpreter.kernels.gap9.conv_2d import ConvolutionIntegers
from tflq.interpreter.kernels.gap9.fully_connected import ProductIntegers
from tflq.interpreter.kernels.gap9.matrix_sum import SumIntegers
from tflq.interpreter.kernels.gap9.max_pool_2d import MaxPoolIntegers
from tflq.interpreter.kernels.gap9.quantize import QuantizeIntegers
from tflq.interpreter.kernels.gap9.relu import ReluIntegers
from tflq.interpreter.kernels.gap9.softmax import SoftmaxIntegers
from tflq.interpreter.kernels.tflite.average_pool_2d import AveragePool
from tflq.interpreter.kernels.tflite.clamped import Clamped
from tflq.interpreter.kernels.tflite.concatenation import RescaledConcatenation
from tflq.interpreter.kernels.tflite.dequantize import Dequantize
from tflq.interpreter.kernels.tflite.fully_connected import FullyConnected
from tflq.interpreter.kernels.tflite.max_pool_2d import MaxPool
from tflq.interpreter.kernels.tflite.quantised_convolution import QuantisedConvolution
from tflq.interpreter.kernels.tflite.quantize import FromFloat, Requantise
from tflq.interpreter.kernels.tflite.rescaled_sum import RescaledSum
from tflq.interpreter.kernels.tflite.softmax import Softmax
from tflq.interpreter.registry import kernel, kernel_name


@dataclass(frozen=True)
class Family:
    """Kernels that one function explains.

    Attributes:
        operators: for messages: "conv_2d, depthwise_conv_2d".
        arithmetic: whose they are.
        explain: the function.
        source: the public source and the page of docs/ where the formula stands.
    """

    operators: str
    arithmetic: str
    explain: Explain
    source: str


def _tflite(operators: str, explain: Explain, source: str) -> Family:
    return Family(operators, "tflite", explain, f"TFLite {source}; docs/tflite.md")


def _gap9(operators: str, explain: Explain, section: str) -> Family:
    return Family(operators, "gap9", explain, f"docs/gap9.md, {section}")


_FAMILIES: dict[type, Family] = {
    QuantisedConvolution: _tflite(
        "conv_2d, depthwise_conv_2d", tflite_filters.explain_convolution, "reference/integer_ops/conv.h"
    ),
    FullyConnected: _tflite(
        "fully_connected", tflite_filters.explain_fully_connected, "reference/integer_ops/fully_connected.h"
    ),
    RescaledSum: _tflite("add, sub", tflite_elementwise.explain_sum, "reference/add.h"),
    Clamped: _tflite(
        "relu, relu6, relu_n1_to_1, relu_0_to_1", tflite_elementwise.explain_clamped, "reference/reference_ops.h"
    ),
    Requantise: _tflite("quantize", tflite_elementwise.explain_requantise, "reference/requantize.h"),
    FromFloat: _tflite("quantize of float32", tflite_elementwise.explain_from_float, "reference/quantize.h"),
    Dequantize: _tflite("dequantize", tflite_elementwise.explain_dequantize, "reference/dequantize.h"),
    AveragePool: _tflite("average_pool_2d", tflite_rows.explain_average_pool, "reference/integer_ops/pooling.h"),
    MaxPool: _tflite("max_pool_2d", tflite_rows.explain_max_pool, "reference/integer_ops/pooling.h"),
    Softmax: _tflite("softmax of 8 bits", tflite_rows.explain_softmax, "reference/softmax.h"),
    ConvolutionIntegers: _gap9("conv_2d, depthwise_conv_2d", gap9_filters.explain_convolution, "4 to 6"),
    ProductIntegers: _gap9("fully_connected", gap9_filters.explain_fully_connected, "4 to 6"),
    SumIntegers: _gap9("add, sub", gap9_others.explain_sum, "10"),
    AveragePoolIntegers: _gap9("average_pool_2d", gap9_others.explain_average_pool, "10"),
    MaxPoolIntegers: _gap9("max_pool_2d", gap9_others.explain_max_pool, "10"),
    ReluIntegers: _gap9("relu, relu6", gap9_others.explain_relu, "1"),
    QuantizeIntegers: _gap9("quantize", gap9_others.explain_quantize, "9"),
    SoftmaxIntegers: _gap9("softmax of 8-bit input", gap9_others.explain_softmax, "11"),
}

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
_MOVE = Family(", ".join(_MOVERS), "all", moves.explain_move, "the operator copies elements")


def family_of(node: Node) -> Family:
    """Return the family that explains a lowered node.

    Raises:
        UnsupportedError: none does; the message lists those that exist.
    """
    if node.operator in _MOVERS and _only_moves(node):
        return _MOVE
    found = _FAMILIES.get(type(node.integers))
    if found is None or (isinstance(node.integers, SoftmaxIntegers) and node.integers.exponentials is None):
        raise UnsupportedError(
            f"'{node.name}' ({node.operator} in arithmetic '{node.arithmetic}') cannot be explained; "
            f"there are {_known()}"
        )
    return found


def _only_moves(node: Node) -> bool:
    if isinstance(node.integers, RescaledConcatenation):
        return all(table is None for table in node.integers.tables)
    return kernel(node.arithmetic or "", kernel_name(node)).module.startswith("tflq.interpreter.kernels.move.")


def _known() -> str:
    by_arithmetic: dict[str, list[str]] = {}
    for family in (*_FAMILIES.values(), _MOVE):
        by_arithmetic.setdefault(family.arithmetic, []).append(family.operators)
    return "; ".join(f"in {name}: {', '.join(operators)}" for name, operators in by_arithmetic.items())
