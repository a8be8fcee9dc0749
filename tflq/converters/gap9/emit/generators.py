"""The AutoTiler generator of each layer with its parameters, as NNTool's model of the network calls it.

Names of parameters are those of AutoTiler's headers (gap_sdk, tools/autotiler_v3: CNN_Generators_SQ8.h,
CNN_Generators_NE16.h, CNN_Copy_Generators.h, ResizeGenerator.h; Apache-2.0). Their values were compared with the models
that NNTool writes (scripts/peer nntool-generators; docs/targets/gap9.md#hand-over-to-greenwaves-flow).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tflq.converters.gap9.emit.hardware import filter_integers
from tflq.converters.gap9.emit.padding import is_padded, pad_control, pad_type
from tflq.converters.gap9.emit.sizes import lone_sizes, sum_sizes
from tflq.converters.gap9.operators import ACTIVATIONS, EXPRESSION, FILTERS, GLOBAL_POOLS, MOVES, POOLS
from tflq.converters.gap9.passes.choose_engines import NE16
from tflq.graph import Affine, Graph, Node
from tflq.graph.operators import CONVOLUTIONS
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.kernels.gap9.rounding import same_scales
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.operands.windows import window_of_node
from tflq.schemas import Json

Parameters = dict[str, int | str]

_NONE = "KOP_NONE"
_KINDS = {
    "logistic": "KOP_SIGMOID",
    "tanh": "KOP_TANH",
    "hard_swish": "KOP_HSWISH",
    "hard_sigmoid": "KOP_HSIGMOID",
    "leaky_relu": "KOP_LEAKYRELU",
}
_POOL_KINDS = {"max_pool_2d": "KOP_MAXPOOL", "average_pool_2d": "KOP_AVGPOOL"}
_GLOBAL_KINDS = {"mean": "KOP_GLOBAL_AVGPOOL", "sum": "KOP_GLOBAL_SUMPOOL", "reduce_max": "KOP_GLOBAL_MAXPOOL"}
_SIZES = ("Feat", "Width", "Height")
_BIAS_BYTES, _SCALE_BYTES = 4, 1


@dataclass(frozen=True)
class Generator:
    """One call.

    Attributes:
        name: of the generator.
        layers: names of the nodes that it computes, in order.
        parameters: by name, in the order of the call, without Name and Ctrl.
        controls: what CNN_SetGenCtrl sets; empty where Ctrl is 0.
        loses_padding: whether a filter or pool is padded, and the call has none.
    """

    name: str
    layers: tuple[str, ...]
    parameters: Parameters
    controls: Mapping[str, int] = field(default_factory=dict)
    loses_padding: bool = False

    def to_dict(self) -> dict[str, Json]:
        """Return it as quantization.json holds it."""
        return {
            "name": self.name,
            "layers": list(self.layers),
            "parameters": dict(self.parameters),
            "controls": dict(self.controls),
        }


def generators_of(graph: Graph) -> dict[str, Generator | str]:
    """Return name of a node -> the generator that begins with it, or why there is none.

    Args:
        graph: Lowered graph.
    """
    generators, editor = dict[str, Generator | str](), GraphEditor(graph)
    units: dict[str, list[Node]] = {}
    for node in graph.nodes:  # by the names that files state: NNTool gives some transposes the same one
        units.setdefault(node.attributes.text("fusion", "") or node.name, []).append(node)
    for nodes in units.values():
        first, *followers = nodes
        reason = _missing(editor, first) or _unpadded(editor, nodes)
        generators |= dict.fromkeys((node.name for node in followers), f"part of the generator of {first.name}")
        generators[first.name] = reason or _MAKERS[first.operator](editor, nodes)
    return generators


def _missing(editor: GraphEditor, node: Node) -> str:
    """Say why a unit has no generator that is known; "" where it has one."""
    operator = node.operator
    if operator == EXPRESSION:
        return "NNTool writes a kernel of its own, Expression_Kernels.c"
    if operator in ("mul", "sub"):
        return (
            f"NNTool generates no code for a lone {operator.upper()}; expressions=true makes it part of an expression"
        )
    if operator == "softmax" and editor.tensors[node.inputs[0]].affine.bits == 16 and _rows(editor, node) > 1:
        return "NNTool generates no code for a softmax of several rows with 16-bit features"
    if operator in CONVOLUTIONS and node.attributes.text("engine") == NE16:
        channels, groups = len(filter_integers(node).rescaling.bias), _groups(editor, node)
        if groups > 1 and not (operator == "depthwise_conv_2d" and channels == groups):
            return "NNTool generates no code for groups on NE16; use_ne16=false has a generator"
    if operator in MOVES and operator not in _MAKERS:
        return "moves data: NNTool places copies, transposes and concatenations, or none"
    return "" if operator in _MAKERS else "not known: no model with it was generated"


def _unpadded(editor: GraphEditor, nodes: Sequence[Node]) -> str:
    if pad_type([window for window, _ in _windows(editor, nodes)]) is not None:
        return ""
    return "NNTool generates no code: no PADTYPE of AutoTiler's fits all sides of the filter and its pool (19)"


def _windows(editor: GraphEditor, nodes: Sequence[Node]) -> list[tuple[Window, tuple[int, ...]]]:
    """Return the windows of a filter and its pool, each with the shape of the map that it reads."""
    found = []
    for node in nodes:
        if node.operator in (*CONVOLUTIONS, *POOLS):
            shape = editor.tensors[node.inputs[0]].shape
            weights = () if node.operator in POOLS else editor.tensors[node.inputs[1]].shape
            found.append((window_of_node(node, shape, weights), shape))
    return found


def _filter(editor: GraphEditor, nodes: Sequence[Node]) -> Generator:
    node, shape = nodes[0], editor.tensors[nodes[0].inputs[0]].shape
    source, on_ne16 = editor.tensors[node.inputs[0]].affine, node.attributes.text("engine") == NE16
    params = filter_integers(node)
    sizes: Parameters = {"Bias_DataSize": _BIAS_BYTES, "Scale_DataSize": _SCALE_BYTES}
    if on_ne16:
        written = editor.tensors[nodes[-1].outputs[0]].affine
        sizes = {"In_DataSize": _bytes(source), "Out_DataSize": _bytes(written), **sizes}
        sizes["Filter_DataSizeBits"] = params.weight_bits
    channels = len(params.rescaling.bias)
    layers = tuple(n.name for n in nodes)
    if node.operator == "fully_connected":
        operators: Parameters = {"LinearOper": "KOP_LINEAR", "ActOper": _activation(editor, nodes)}
        inputs = params.weights.size // channels
        name = "CNN_LinearAct_NE16" if on_ne16 else "CNN_LinearAct_SQ8"
        return Generator(name, layers, {**sizes, "InDim": inputs, "OutDim": channels, **operators})
    windows = _windows(editor, nodes)
    per_channel, groups = node.operator == "depthwise_conv_2d", _groups(editor, node)
    is_depthwise = channels == groups and (per_channel or shape[3] == 1)
    grouped = not on_ne16 and groups > 1 and not (per_channel and channels == groups)
    parameters: Parameters = {"GroupIn": shape[3] // groups, "GroupOut": channels // groups} if grouped else {}
    parameters |= {**sizes, "InFeat": shape[3], "OutFeat": channels, "Width": shape[2], "Height": shape[1]}
    parameters |= {"ConvOper": "KOP_CONV_DW" if is_depthwise else "KOP_CONV"}
    parameters |= _window(*windows[0], "c", "ConvPad")
    if on_ne16:
        parameters["PadValue"] = node.attributes.integer("inside_zero_point", int(source.zero_point[0]))
    pool = next((n for n in nodes if n.operator in POOLS), None)
    parameters["PoolOper"] = _NONE if pool is None else _POOL_KINDS[pool.operator]
    parameters |= dict.fromkeys(_names("p", "PoolPad"), 0) if pool is None else _window(*windows[1], "p", "PoolPad")
    parameters["ActOper"] = _activation(editor, nodes)
    controls = ({} if on_ne16 else {"HWC": 1}) | pad_control([window for window, _ in windows])
    plain = "CNN_ConvolutionNE16" if on_ne16 else "CNN_ConvolutionPoolAct_SQ8"
    name = "CNN_GroupedConvolutionPoolAct_SQ8" if grouped else plain
    return Generator(name, layers, parameters, controls, _loses_padding(windows))


def _groups(editor: GraphEditor, node: Node) -> int:
    channels = editor.tensors[node.inputs[0]].shape[3]
    each = 1 if node.operator == "depthwise_conv_2d" else editor.tensors[node.inputs[1]].shape[3]
    return channels // each


def _names(letter: str, pad: str) -> tuple[str, ...]:
    return (*(f"{kind}{letter}{axis}" for kind in "FDS" for axis in "xy"), pad)


def _window(window: Window, shape: tuple[int, ...], letter: str, pad: str) -> Parameters:
    """Kernel, dilation and stride, horizontal first, and whether it is padded."""
    numbers = (n for pair in (window.kernel, window.dilation, window.stride) for n in pair[::-1])
    padded = is_padded(window, *shape[1:3])
    return dict(zip(_names(letter, pad), (*numbers, int(padded)), strict=True))


def _loses_padding(windows: Sequence[tuple[Window, tuple[int, ...]]]) -> bool:
    return any(any(window.padding) and not is_padded(window, *shape[1:3]) for window, shape in windows)


def _pool(editor: GraphEditor, nodes: Sequence[Node]) -> Generator:
    ((window, shape),) = _windows(editor, nodes)
    parameters: Parameters = {"Feat": shape[3], "Width": shape[2], "Height": shape[1]}
    parameters |= {"PoolOper": _POOL_KINDS[nodes[0].operator], **_window(window, shape, "p", "PoolPad")}
    parameters["ActOper"] = _activation(editor, nodes)
    controls = {"HWC": 1} | pad_control([window]) | _unsigned(editor, nodes)
    layers = tuple(n.name for n in nodes)
    return Generator("CNN_PoolAct_SQ8", layers, parameters, controls, _loses_padding([(window, shape)]))


def _global_pool(editor: GraphEditor, nodes: Sequence[Node]) -> Generator:
    """Width and Height: NNTool gives two other factors of the same product."""
    node = nodes[0]
    shape = editor.tensors[node.inputs[0]].shape
    axes = editor.tensors[node.inputs[1]].data
    reduced = sorted({int(a) % len(shape) for a in ([] if axes is None else axes.reshape(-1))})
    lengths = [shape[a] for a in reduced]
    kept = int(np.prod(shape)) // int(np.prod(lengths))
    parameters: Parameters = {"Feat": kept, "Width": int(np.prod(lengths[1:])), "Height": lengths[0]}
    parameters |= {"PoolOper": _GLOBAL_KINDS[node.operator], "ActOper": _activation(editor, nodes)}
    return Generator("CNN_GlobalPoolAct_SQ8", tuple(n.name for n in nodes), parameters)


def _add(editor: GraphEditor, nodes: Sequence[Node]) -> Generator:
    parameters: Parameters = dict(zip(_SIZES, sum_sizes(editor, nodes[0]), strict=True))
    parameters |= {"AddMatOper": "KOP_MATADD", "ActOper": _NONE if len(nodes) == 1 else "KOP_RELU"}
    return Generator("CNN_MatAddAct_SQ8", tuple(n.name for n in nodes), parameters, _unsigned(editor, nodes))


def _softmax(editor: GraphEditor, nodes: Sequence[Node]) -> Generator:
    tensor = editor.tensors[nodes[0].inputs[0]]
    parameters: Parameters = {"Dim": tensor.shape[-1], "SoftMaxOper": "KOP_SOFTMAX"}
    if (rows := _rows(editor, nodes[0])) > 1:
        return Generator("CNN_SoftMax2D_SQ8", (nodes[0].name,), {"Feat": rows, **parameters})
    if tensor.affine.bits == 16:
        wide: Parameters = {"In_DataSize": 2, "Out_DataSize": 2, "In_Q": 0, "Out_Q": 0, "In_InL3": 1, "Out_InL3": 1}
        return Generator("CNN_SoftMax", (nodes[0].name,), {**wide, **parameters})
    return Generator("CNN_SoftMax_SQ8", (nodes[0].name,), parameters)


def _rows(editor: GraphEditor, node: Node) -> int:
    tensor = editor.tensors[node.inputs[0]]
    return tensor.size // tensor.shape[-1]


def _quantize(editor: GraphEditor, nodes: Sequence[Node]) -> Generator:
    tensor, target = (editor.tensors[t] for t in (nodes[0].inputs[0], nodes[0].outputs[0]))
    shifts = same_scales(tensor.affine.scale, target.affine.scale) and tensor.affine.bits == target.affine.bits
    parameters: Parameters = {
        "In_DataSize": _bytes(tensor.affine),
        "Out_DataSize": _bytes(target.affine),
        "Sz": tensor.size,
        "kop": f"KOP_CONVERT_FP_FP_{'ZEROPOINT' if shifts else 'SCALE'}",
    }
    return Generator("CNN_Convert", (nodes[0].name,), parameters)


def _resize(kind: str) -> Callable[[GraphEditor, Sequence[Node]], Generator]:
    def make(editor: GraphEditor, nodes: Sequence[Node]) -> Generator:
        source, target = (editor.tensors[t] for t in (nodes[0].inputs[0], nodes[0].outputs[0]))
        parameters: Parameters = {"Win": source.shape[2], "Hin": source.shape[1]}
        parameters |= {"Wout": target.shape[2], "Hout": target.shape[1], "Channels": source.shape[3]}
        parameters |= {"InOut_Type": f"{'SIGNED' if source.affine.signed else 'UNSIGNED'}_INOUT", "Type": kind}
        name = "GenerateResizeMultiChannel" + "Q16" * (source.affine.bits == 16)
        return Generator(name, (nodes[0].name,), parameters)

    return make


def _alone(editor: GraphEditor, nodes: Sequence[Node]) -> Generator:
    """A pool without a window; a hard sigmoid of two operators has RELUN."""
    parameters: Parameters = dict(zip(_SIZES, lone_sizes(editor, nodes[0]), strict=True))
    parameters |= {"PoolOper": _NONE, **dict.fromkeys(_names("p", "PoolPad"), 0)}
    parameters["ActOper"] = _activation(editor, nodes)
    of_two = nodes[0].operator == "hard_sigmoid" and nodes[0].attributes.real("offset", 3.0) == 0
    controls = ({"RELUN": 0} if of_two else {}) | _unsigned(editor, nodes)
    return Generator("CNN_PoolAct_SQ8", (nodes[0].name,), parameters, controls)


def _activation(editor: GraphEditor, nodes: Sequence[Node]) -> str:
    """ActOper; a ReLU whose zero is not the quantized value 0 clips at the zero point: KOP_RELUM."""
    for node in nodes:
        if node.operator in ACTIVATIONS:
            shifted = editor.tensors[node.outputs[0]].affine.zero_point.any()
            return _KINDS.get(node.operator, "KOP_RELUM" if shifted else "KOP_RELU")
    return _NONE


def _unsigned(editor: GraphEditor, nodes: Sequence[Node]) -> dict[str, int]:
    """Controls of kernels of the cluster for unsigned features."""
    source, written = editor.tensors[nodes[0].inputs[0]].affine, editor.tensors[nodes[-1].outputs[0]].affine
    output = {"OUTPUT_DATASIZE": _bytes(written)}
    if source.signed:
        return {} if written.signed else output
    return {**output, "INPUT_DATASIZE": _bytes(source)}


def _bytes(affine: Affine) -> int:
    """AutoTiler's data size: bytes of an element, negative where it is unsigned."""
    return affine.bits // 8 * (1 if affine.signed else -1)


_MAKERS: Mapping[str, Callable[[GraphEditor, Sequence[Node]], Generator]] = {
    **dict.fromkeys(FILTERS, _filter),
    **dict.fromkeys(POOLS, _pool),
    **dict.fromkeys(GLOBAL_POOLS, _global_pool),
    "add": _add,
    "softmax": _softmax,
    "quantize": _quantize,
    "resize_bilinear": _resize("KOP_BILINEAR_RESIZE"),
    "resize_nearest_neighbor": _resize("KOP_NEAREST_NEIGHBOR_RESIZE"),
    **dict.fromkeys(ACTIVATIONS, _alone),
}
