"""Which operators the target cannot take, and why: all at once, each with its way out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.converters import onnx
from tflq.converters.passes.patterns import constant_operand
from tflq.converters.passes.requirements import collect_problems, no_mapping
from tflq.converters.passes.take_in import fusable_activation
from tflq.converters.tpu_mlir.passes.forms import COMPARISONS, RECTIFIER_LIMITS, Form, form_of, scalar_of
from tflq.converters.tpu_mlir.passes.unify import CHOICES, is_upsampled
from tflq.graph import DType, Graph, Node
from tflq.graph.rewriting import GraphEditor, fused_activation
from tflq.schemas.tpu_mlir import operators_of, specification

RECTIFIERS = tuple(RECTIFIER_LIMITS)
FUSING = operators_of("fused_activations", "operators")
_TAKEN = operators_of("operators")


def find_rectifier(editor: GraphEditor, node: Node) -> Node | None:
    """Return the rectifier that can be fused into a node; None if there is none."""
    return fusable_activation(editor, node, FUSING, RECTIFIERS)


def problems_of(graph: Graph) -> tuple[str, ...]:
    """Return one line for each operator of a float graph that cannot be mapped, in order of the file."""
    editor = GraphEditor(graph)
    nodes = editor.nodes
    fused = {rectifier.name for node in nodes if (rectifier := find_rectifier(editor, node)) is not None}
    problems = collect_problems(
        graph, lambda index, _: "" if nodes[index].name in fused else _reason(editor, nodes[index])
    )
    idle = [graph.tensors[t].name for t in graph.outputs if editor.writer(t) is None]
    still = tuple(f"output '{name}': no operator computes it; remove it from the outputs" for name in idle)
    return (*problems, *still) or onnx.unsupported(graph)


def supported_operators() -> tuple[str, ...]:
    """Return the operators that the target takes, all or in part."""
    return tuple(sorted(_TAKEN))


def _reason(graph: GraphEditor, node: Node) -> str:
    if node.custom_code or node.operator not in _TAKEN:
        return no_mapping(node, "no mapping to BM1684X")
    clamp = fused_activation(node)
    if clamp != "none" and not (node.operator in FUSING and clamp in RECTIFIERS):
        return (
            f"fused activation {clamp}; TPU-MLIR fuses {' and '.join(RECTIFIERS)} into {', '.join(FUSING)} only: make "
            f"it an operator of its own"
        )
    truths = [t for t in node.inputs if t >= 0 and graph.tensors[t].dtype is DType.BOOL]
    is_read = node.operator == "logical_and" or (node.operator in CHOICES and len(truths) == 1)
    if truths and (not is_read or any(graph.tensors[t].is_constant for t in truths)):
        return (
            f"it reads '{graph.tensors[truths[0]].name}', truth values; only LOGICAL_AND of two and SELECT do, keep it "
            f"outside"
        )
    return _RULES[node.operator](graph, node) if node.operator in _RULES else ""


def _filter(graph: GraphEditor, node: Node) -> str:
    given = [graph.tensors[t] for t in node.inputs[1:] if t >= 0]
    if not all(t.is_constant for t in given):
        return "weights or bias are computed at run time; TPU-MLIR's INT8 needs constants"
    return ""


def _rectifier(graph: GraphEditor, node: Node) -> str:
    writer = graph.writer(node.inputs[0])
    if writer is not None and writer.operator == "concatenation":
        return (
            "it follows a concatenation that others read, too, and TPU-MLIR would move it and rename tensors: put it "
            "in front of that"
        )
    return ""


def _pair(graph: GraphEditor, node: Node) -> str:
    if node.operator == "pow" and (constant_operand(graph, node) != 1 or form_of(graph, node) is not Form.SCALAR):
        return "a power other than of one constant exponent; TPU-MLIR makes logarithm, product and exponent of it"
    writer = graph.writer(node.inputs[1])
    if node.operator == "div" and writer is not None and writer.operator == "pow":
        return "the divisor is a power, which TPU-MLIR inverts and multiplies; write a product with the inverse power"
    divisor = graph.tensors[node.inputs[1]].data
    form, holds_zero = form_of(graph, node), divisor is not None and not np.all(divisor)
    if node.operator == "div" and (form is Form.FULL or (form is Form.CHANNEL and holds_zero)):
        return "the quotient with a constant of several numbers; write it as a product with the inverse"
    return ""


def _minimum(graph: GraphEditor, node: Node) -> str:
    """TPU-MLIR compares the quantized value of one element with the number itself, and ends at a negative number."""
    if form_of(graph, node) is not Form.SCALAR or graph.tensors[node.outputs[0]].size != 1:
        return ""
    number = scalar_of(graph, node)
    if number >= DType.UINT8.maximum:
        return ""
    return (
        f"the minimum of one element and {number:g}: TPU-MLIR compares the number with the quantized value, not with "
        f"the real one; keep it outside"
    )


def _resize(graph: GraphEditor, node: Node) -> str:
    if node.operator == "resize_bilinear" or is_upsampled(graph, node):
        return ""
    if node.attributes.boolean("half_pixel_centers", False) or node.attributes.boolean("align_corners", False):
        return (
            "the nearest pixel with half-pixel centers or aligned corners by other factors than 2 and 2: another rule"
        )
    return ""


def _choice(graph: GraphEditor, node: Node) -> str:
    branches = [graph.tensors[t] for t in node.inputs[1:]]
    if any(t.dtype is not DType.FLOAT32 or t.is_constant for t in branches):
        return "it chooses integers or a constant, whose form in TPU-MLIR is not known; keep it outside"
    shapes = {graph.shape(t) for t in (*node.inputs, *node.outputs)}
    return "" if len(shapes) == 1 else "it chooses between tensors of several shapes; give them one shape"


def _exact_gelu(graph: GraphEditor, node: Node) -> str:  # noqa: ARG001
    if node.attributes.boolean("approximate", False):
        return "gelu by tanh, nine layers in TPU-MLIR; export the model with approximate=False, which is one table"
    return ""


def _transposed(graph: GraphEditor, node: Node) -> str:
    given = [graph.tensors[t] for p, t in enumerate(node.inputs) if p != 2 and t >= 0]
    return "" if all(t.is_constant for t in given) else "weights, bias or shape are computed at run time"


def _average_pool(graph: GraphEditor, node: Node) -> str:
    limit = specification()["largest_pool_stride"]
    assert isinstance(limit, int)
    outputs = graph.tensors[node.outputs[0]].shape[1:3]
    strides = (node.attributes.integer("stride_h"), node.attributes.integer("stride_w"))
    far = [s for s, o in zip(strides, outputs, strict=True) if s > limit and o > 1]
    return f"a stride of {far[0]}; TPU-MLIR's code generation takes up to {limit}" if far else ""


def _prelu(graph: GraphEditor, node: Node) -> str:
    return "" if graph.tensors[node.inputs[1]].is_constant else "the slopes are computed at run time"


def _normalization(graph: GraphEditor, node: Node) -> str:
    gamma, beta = (graph.tensors[t].data for t in node.inputs[1:])
    if gamma is None or beta is None or np.any(gamma != 1) or not np.any(beta):
        return ""
    return (
        "a normalization with beta and without gamma: TPU-MLIR adds beta in a layer of its own, whose integers are not "
        "known; export it with a gamma that is not 1 everywhere, or keep it outside"
    )


def _heads(graph: GraphEditor, node: Node) -> str:
    """Softmax of four axes between products of reshaped products: heads of attention."""
    if len(graph.tensors[node.inputs[0]].shape) != 4 or _origin(graph, node.inputs[0], ("mul",)) != "batch_matmul":
        return ""
    scores, x = None, node.inputs[0]
    while scores is None:
        writer = graph.writer(x)
        assert writer is not None  # `_origin` went this way
        scores = writer if writer.operator == "batch_matmul" else None
        x = next(x for x in writer.inputs if not graph.tensors[x].is_constant)
    if {_origin(graph, x, ("transpose", "reshape", "mul")) for x in scores.inputs} != {"fully_connected"}:
        return ""
    return (
        "attention of several heads, each from a product with a bias: TPU-MLIR makes one layer of it, which its own "
        "simulator does not run; keep it outside, or add the biases behind the reshapes"
    )


def _origin(graph: GraphEditor, t: int, through: tuple[str, ...]) -> str:
    """Return the operator that writes a tensor, upstream of the operators in `through`; empty for an input."""
    while (writer := graph.writer(t)) is not None and writer.operator in through:
        computed = [x for x in writer.inputs if not graph.tensors[x].is_constant]
        if len(computed) != 1:
            break
        (t,) = computed
    return "" if writer is None else writer.operator


def _comparison(graph: GraphEditor, node: Node) -> str:
    if any(graph.tensors[t].dtype is not DType.FLOAT32 for t in node.inputs):
        return "it compares integers; only reals are compared, keep it outside"
    if form_of(graph, node) in (Form.CHANNEL, Form.FULL):
        return "a comparison with a constant of several numbers, whose form in TPU-MLIR is not known"
    return ""


_RULES: dict[str, Callable[[GraphEditor, Node], str]] = {
    **dict.fromkeys(COMPARISONS, _comparison),
    **dict.fromkeys(CHOICES, _choice),
    "minimum": _minimum,
    "div": _pair,
    "pow": _pair,
    "gelu": _exact_gelu,
    "resize_bilinear": _resize,
    "resize_nearest_neighbor": _resize,
    "transpose_conv": _transposed,
    "average_pool_2d": _average_pool,
    "conv_2d": _filter,
    "depthwise_conv_2d": _filter,
    "fully_connected": _filter,
    "prelu": _prelu,
    "layer_normalization": _normalization,
    "softmax": _heads,
    "relu": _rectifier,
    "relu6": _rectifier,
}
