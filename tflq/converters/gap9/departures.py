"""Where NNTool's integers are not the right result: one line a layer (docs/differences/gap9.md).

Of a file: where its importer fails on what is folded here before a target sees the graph (17.24). Operators on shapes
and indices are constants by then (converters/settled.py); NNTool imports each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from tflq.converters.gap9.check import vendor_failure
from tflq.converters.gap9.emit.generators import Generator, generators_of
from tflq.converters.gap9.emit.hardware import filter_integers
from tflq.converters.gap9.operators import FILTERS, FLATTENING, MOVES, RECTIFIERS, behind_thin, taken_for_another
from tflq.converters.settled import settled_graph
from tflq.graph import Affine, Graph, Node
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.kernels.gap9.elementwise import SumParams
from tflq.interpreter.kernels.gap9.expressions.kernel import ExpressionParams
from tflq.interpreter.kernels.gap9.rounding import shift_between


def departures_of(graph: Graph) -> dict[str, str]:
    """Return name of a node -> why NNTool's result, which the chip computes, is not the right one, or is none at all.

    Args:
        graph: lowered.
    """
    found, editor = {}, GraphEditor(graph)
    generators = generators_of(graph)
    for node in graph.nodes:
        rule, generator = _RULES.get(node.operator), generators[node.name]
        marked, reason = node.attributes.text("departure", ""), rule(editor, node) if rule is not None else ""
        flaws = node.params.flaws if isinstance(node.params, ExpressionParams) else ()
        no_code = generator if isinstance(generator, str) and "generates no code" in generator else ""
        padding = _LOST if isinstance(generator, Generator) and generator.loses_padding else ""
        reason = "; ".join(filter(None, (marked, reason, *flaws, no_code, padding)))
        if reason:
            found[node.name] = reason
    return found


def _sum(_editor: GraphEditor, _node: Node) -> str:
    return "NNTool's SUM is 1/128 of the sum (17.2)"


def _tile(editor: GraphEditor, node: Node) -> str:
    shape, times = editor.shape(node.inputs[0]), editor.constant(node.inputs[1])
    repeats = times is not None and any(n > 1 and size > 1 for n, size in zip(times.tolist(), shape, strict=False))
    return "NNTool repeats each element in its place (17.3)" if repeats else ""


def _average_pool(editor: GraphEditor, node: Node) -> str:
    wide = editor.tensors[node.inputs[0]].affine.bits == 16
    wraps = "NNTool's product of the sum and 65536/n wraps in 32 bits (17.4)" if wide else ""
    fails = "NNTool fails on an average pool behind the sum of two merged convolutions (17.27)"
    return "; ".join(filter(None, (wraps, fails if _behind_merged_sum(editor, node) else "")))


def _behind_merged_sum(editor: GraphEditor, pool: Node) -> bool:
    """Whether a pool reads, through a ReLU, a sum of parts of one merged convolution."""
    writer = _writer(editor, pool.inputs[0], (*MOVES, *RECTIFIERS, "quantize"))
    if writer is None or writer.operator != "add":
        return False
    parts = [_writer(editor, t, _NO_SPLIT) for t in writer.inputs]
    return all(part is not None and part.name.endswith("_merged_split") for part in parts)


def _writer(editor: GraphEditor, tensor: int, passed: Collection[str]) -> Node | None:
    """Return the node that writes a tensor, upstream of nodes of these operators; None for an input or constant."""
    while (writer := editor.writer(tensor)) is not None and writer.operator in passed:
        tensor = writer.inputs[0]
    return writer


def _hard_swish(editor: GraphEditor, node: Node) -> str:
    source, written = (editor.tensors[t].affine.bits for t in (node.inputs[0], node.outputs[0]))
    return "NNTool's product wraps in 32 bits (17.4)" if source > 8 and written == 16 else ""


def _sub(editor: GraphEditor, node: Node) -> str:
    types = [editor.tensors[t].quantization for t in node.inputs]
    shifted = any(isinstance(q, Affine) and q.zero_point.any() for q in types)
    kept = "NNTool keeps + on both zero points (17.5)" if shifted else ""
    return "; ".join(filter(None, (kept, _wrapping_bias(node))))


def _quantize(editor: GraphEditor, node: Node) -> str:
    if _mean_of_a_relu6(editor, node):
        return "NNTool may take [0, 6], the ReLU6's range, for the mean's input (17.20)"
    source, target = (editor.tensors[t].affine for t in (node.inputs[0], node.outputs[0]))
    bits, ratio = shift_between(source, target), float(source.scale[0]) / float(target.scale[0])
    return (
        f"NNTool shifts by {abs(bits)} bits for a ratio of scales of {ratio:.6g} (17.17)"
        if bits and ratio != 2.0**bits
        else ""
    )


def _mean_of_a_relu6(editor: GraphEditor, node: Node) -> bool:
    """Whether it makes a mean's input, on a range that does not end at 6, of a ReLU6 that stands alone."""
    readers = {reader.operator for reader in editor.readers(node.outputs[0])}
    writer = _writer(editor, node.inputs[0], FLATTENING)
    if writer is None or writer.operator != "relu6" or "fusion" in writer.attributes or not readers & {"mean", "sum"}:
        return False
    return abs(127 * float(editor.tensors[node.outputs[0]].affine.scale[0]) - 6) > 1e-3


def _filter(editor: GraphEditor, node: Node) -> str:
    channels = filter_integers(node).overflowing
    named = ", ".join(map(str, channels[:4])) + (", ..." if len(channels) > 4 else "")
    wraps = (
        f"NNTool's product with M can wrap in 32 bits in {len(channels)} channels: {named} (17.6)" if channels else ""
    )
    return "; ".join(filter(None, (wraps, _behind_softmax(editor, node))))


def _behind_softmax(editor: GraphEditor, node: Node) -> str:
    """Of a filter, global pool or concatenation that reads a softmax, through moves and changes of type."""
    found = _is_behind(editor, node.inputs, "softmax", (*MOVES, "quantize"))
    return "NNTool gives what reads a softmax other types, or fails (17.26)" if found else ""


def _add(editor: GraphEditor, node: Node) -> str:
    twin, wide = taken_for_another(editor, node), _filter_beside_a_product(editor, node)
    other = f"'{wide}' in front of it may write other bits in NNTool (17.18)" if wide else ""
    return "; ".join(filter(None, (twin, other, _wrapping_bias(node))))


def _wrapping_bias(node: Node) -> str:
    wraps = isinstance(node.params, SumParams) and node.params.wraps
    return "NNTool's bias wraps in 16 bits (17.6)" if wraps else ""


def _filter_beside_a_product(editor: GraphEditor, node: Node) -> str:
    """Return the name of a filter alone of 16 bits that it adds to what a product stands behind; "" for none."""
    sources = [behind_thin(editor, t)[-1] for t in node.inputs]
    for source, other in (sources, sources[::-1]):
        writer = editor.writer(source)
        if writer is None or writer.operator not in FILTERS or "fusion" in writer.attributes:
            continue
        if editor.tensors[writer.inputs[0]].affine.bits == 16 and _is_behind(editor, (other,), "mul"):
            return writer.name
    return ""


def _is_behind(
    editor: GraphEditor, tensors: Iterable[int], operator: str, passed: Collection[str] | None = None
) -> bool:
    """Whether one of these tensors follows from an operator: through the operators that are `passed`, None for any."""
    open_, seen = list(tensors), set[str]()
    while open_:
        node = editor.writer(open_.pop())
        if node is None or node.name in seen:
            continue
        if node.operator == operator:
            return True
        seen.add(node.name)
        open_ += node.inputs if passed is None or node.operator in passed else ()
    return False


_NO_SPLIT = (*(name for name in MOVES if not name.startswith("split")), "quantize")
_LOST = "AutoTiler gets no padding, as the outputs are fewer than those of SAME padding (19)"
_RULES: Mapping[str, Callable[[GraphEditor, Node], str]] = {
    "sum": lambda editor, node: "; ".join(filter(None, (_sum(editor, node), _behind_softmax(editor, node)))),
    "mean": _behind_softmax,
    "reduce_max": _behind_softmax,
    "concatenation": _behind_softmax,
    "tile": _tile,
    **dict.fromkeys(("gather", "space_to_batch_nd", "slice", "resize_bilinear"), vendor_failure),
    "average_pool_2d": _average_pool,
    "hard_swish": _hard_swish,
    "sub": _sub,
    "quantize": _quantize,
    **dict.fromkeys(FILTERS, _filter),
    "add": _add,
    "mul": taken_for_another,
}


READ = frozenset(
    {
        *("abs", "add", "div", "maximum", "mean", "minimum", "mul", "pow", "reduce_max", "relu", "sub", "sum"),
        *("cast", "concatenation", "fill", "gather", "pack", "pad", "reshape", "reverse_v2", "shape", "slice"),
        *("split", "split_v", "strided_slice", "tile", "transpose", "unpack", "dequantize", "quantize"),
    }
)
"""Operators on plain integers that the importer was seen to read; it fails on the other ones that were tried."""
_WAY = "`tflq cut MODEL --settled -o FILE.tflite` writes the file with them folded, for tflq and NNTool"


def unread_operators(graph: Graph) -> Mapping[str, str]:
    """Return the first operator that is folded and that NNTool fails on -> all of them by name, and the way out.

    Args:
        graph: of the file, as it stands.
    """
    if all(_is_read(graph, node) for node in graph.nodes):
        return {}
    kept = {node.name for node in settled_graph(graph).nodes}
    lost = [node for node in graph.nodes if node.name not in kept and not _is_read(graph, node)]
    named = ", ".join(dict.fromkeys(node.operator.upper() for node in lost))
    return {lost[0].name: f"NNTool's importer fails on {named}, which is folded here (17.24); {_WAY}"} if lost else {}


def _is_read(graph: Graph, node: Node) -> bool:
    """GATHER with a single index is not."""
    alone = node.operator == "gather" and graph.tensors[node.inputs[1]].shape == ()
    return node.operator in READ and not alone
