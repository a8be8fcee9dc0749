"""The passes of the target `tflm`, in order."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.tflm.options import INT8, TflmOptions
from tflq.converters.tflm.passes.choices import replace_integer_choices
from tflq.converters.tflm.passes.detections import dequantize_detections
from tflq.converters.tflm.passes.exact_products import compute_in_float
from tflq.converters.tflm.passes.fold import remove_idle_quantize, settle_shapes
from tflq.converters.tflm.passes.pools import replace_unsigned_pools
from tflq.converters.tflm.passes.repeat import replace_tiles, split_concatenations
from tflq.converters.tflm.passes.signed import store_as_int8
from tflq.converters.tflm.passes.tables import rescale_operands, tabulate_functions
from tflq.converters.tflm.passes.weights import separate_zero_points
from tflq.graph import Graph, Operands, pruned
from tflq.graph.rewriting import GraphEditor, Pass, graph_pass, rewrite_graph
from tflq.interpreter.registry import arithmetic_of

ARITHMETIC = "tflm"
OWNER = "tflm"
_PAGE = "docs/targets/tflm.md#passes"


def _state_arithmetic(editor: GraphEditor) -> None:
    for node in editor.nodes:
        operands = Operands.from_node(editor.tensors, node)
        if arithmetic_of(node, operands, ARITHMETIC) == ARITHMETIC:
            editor.replace(node, replace(node, arithmetic=ARITHMETIC))


EXACT_PRODUCTS = Pass[GraphEditor](
    "compute_in_float", compute_in_float, "fully_connected=float32: TFLite rounds once, the runtime twice", _PAGE
)
PASSES: tuple[Pass[GraphEditor], ...] = (
    graph_pass("settle_shapes", settle_shapes, "the runtime trusts stored shapes and folds nothing", _PAGE),
    Pass("replace_tiles", replace_tiles, "no kernel of TILE: copies are joined", _PAGE),
    Pass("split_concatenations", split_concatenations, "CONCATENATION takes at most 10 operands", _PAGE),
    Pass("replace_integer_choices", replace_integer_choices, "no kernel of SELECT_V2 for int32", _PAGE),
    Pass("dequantize_detections", dequantize_detections, "the detections' kernel takes float32", _PAGE),
    Pass("rescale_operands", rescale_operands, "CONCATENATION takes operands of one scale", _PAGE),
    Pass("tabulate_functions", tabulate_functions, "a function without an equal kernel is a table", _PAGE),
    Pass("separate_zero_points", separate_zero_points, "int8 convolutions have weights with zero point 0", _PAGE),
    Pass("replace_unsigned_pools", replace_unsigned_pools, "int8 pools round other ties than uint8 pools", _PAGE),
    Pass("store_as_int8", store_as_int8, "no kernels of uint8: quantized values are 128 less", _PAGE),
    EXACT_PRODUCTS,
    Pass("remove_idle_quantize", remove_idle_quantize, "source and result are equal", _PAGE),
    Pass("state_arithmetic", _state_arithmetic, "the runtime's kernels run the nodes", _PAGE),
)


def rewrite_for_tflm(graph: Graph, options: TflmOptions) -> Graph:
    """Return the graph that TensorFlow Lite Micro runs as TFLite runs the given one."""
    passes = [step for step in PASSES if options.fully_connected != INT8 or step is not EXACT_PRODUCTS]
    return pruned(rewrite_graph(graph, passes, OWNER))
