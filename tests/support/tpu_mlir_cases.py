"""The small graphs of cases/tpu_mlir_more as tflq graphs, and TPU-MLIR's lowered tensors beside tflq's.

python -m tests.support.tpu_mlir_cases compares all of them; the suite takes a share.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.data import data_path
from tests.support.onnx_graph import RULES, OnnxReader, last, same_shape
from tflq.converters.onnx import translate
from tflq.converters.settings import parse_settings, read_options
from tflq.converters.tpu_mlir import TPU_MLIR
from tflq.converters.tpu_mlir.adapt import for_the_tool
from tflq.converters.tpu_mlir.options import LayerOptions
from tflq.converters.tpu_mlir.passes.expand import expand
from tflq.converters.tpu_mlir.quantise import quantise_network
from tflq.converters.tpu_mlir.tables import parse_calibration_table
from tflq.graph import Array, DType, Graph
from tflq.interpreter import Engine, lower

Options = dict[str, Any]
_UNARY = {
    "Abs": "abs", "Ceil": "ceil", "Cos": "cos", "Exp": "exp", "Floor": "floor", "Log": "log", "Neg": "neg",
    "Round": "round", "Sign": "sign", "Sin": "sin", "Sqrt": "sqrt", "Relu": "relu", "Sigmoid": "logistic",
    "Tanh": "tanh",
}  # fmt: skip
_PAIRS = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Max": "maximum", "Min": "minimum", "Pow": "pow"}


def operand(r: OnnxReader, name: str, rank: int) -> int:
    """A tensor, or a constant brought to channels last beside images."""
    if name in r.tensors:
        return r.tensors[name]
    value = r.constants[name].astype(np.float32)
    if rank == 4 and value.size > 1:
        value = value.reshape((1,) * (4 - value.ndim) + value.shape).transpose(0, 2, 3, 1)
    return r.constant(name, value)


def pair(operator: str) -> Any:
    def rule(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
        shapes = [r.shapes[n] if n in r.tensors else last(_padded(r.constants[n], 4)) for n in inputs]
        rank = max(len(r.shapes[n]) for n in inputs if n in r.tensors)
        shapes = [s for s, n in zip(shapes, inputs, strict=True) if n in r.tensors or rank == 4]
        tensors = [operand(r, n, rank) for n in inputs]
        r.write(operator, tensors, output, np.broadcast_shapes(*shapes))

    return rule


def _padded(value: Array, rank: int) -> tuple[int, ...]:
    return (1,) * max(0, rank - value.ndim) + value.shape


def reduction(operator: str) -> Any:
    def rule(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
        shape, rank = r.shapes[inputs[0]], len(r.shapes[inputs[0]])
        axes = r.constants[inputs[1]].tolist() if len(inputs) > 1 else options.get("axes", list(range(rank)))
        where = (0, 3, 1, 2) if rank == 4 else range(rank)
        kept = [where[a % rank] for a in axes]
        keep = bool(options.get("keepdims", 1))
        if not keep and rank == 4 and sorted(kept) != [1, 2]:
            raise KeyError("what is left of an image in the order of channels first")
        new = tuple(1 if a in kept else s for a, s in enumerate(shape) if keep or a not in kept)
        data = r.constant(f"{output}_axes", np.array(sorted(kept), np.int32))
        r.write(operator, [r.tensors[inputs[0]], data], output, new, keep_dims=keep)

    return rule


def matmul(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    a, b = (r.shapes.get(n) for n in inputs)
    if a is None or b is None or len(a) == 4 or len(b) == 4:
        raise KeyError("a product of images or with a constant")
    r.write("batch_matmul", [r.tensors[n] for n in inputs], output, (*a[:-1], b[-1]))


def depth_to_space(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    if options.get("mode", b"DCR") != b"DCR":
        raise KeyError("CRD")
    n, h, w, c = r.shapes[inputs[0]]
    k = options["blocksize"]
    r.write("depth_to_space", [r.tensors[inputs[0]]], output, (n, h * k, w * k, c // (k * k)), block_size=k)


def space_to_depth(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    n, h, w, c = r.shapes[inputs[0]]
    k = options["blocksize"]
    r.write("space_to_depth", [r.tensors[inputs[0]]], output, (n, h // k, w // k, c * k * k), block_size=k)


def slice_(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    shape = r.shapes[inputs[0]]
    starts, ends, axes = (r.constants[n].tolist() for n in inputs[1:4])
    steps = r.constants[inputs[4]].tolist() if len(inputs) > 4 else [1] * len(axes)
    begin, end, stride = [0] * len(shape), list(shape), [1] * len(shape)
    for start, stop, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = ((0, 3, 1, 2) if len(shape) == 4 else range(len(shape)))[axis]
        found = range(shape[place])[start:stop:step]
        begin[place], end[place], stride[place] = found.start, found.stop, step
    new = tuple(len(range(b, e, s)) for b, e, s in zip(begin, end, stride, strict=True))
    parts = [r.constant(f"{output}_{i}", np.array(v, np.int32)) for i, v in enumerate((begin, end, stride))]
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    r.write("strided_slice", [r.tensors[inputs[0]], *parts], output, new, **masks)


def clip(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    bounds = tuple(float(r.constants[n]) for n in inputs[1:3])
    operators = {(0.0, 6.0): "relu6", (0.0, 1.0): "relu_0_to_1", (-1.0, 1.0): "relu_n1_to_1"}
    r.write(operators[bounds], [r.tensors[inputs[0]]], output, r.shapes[inputs[0]])


def conv(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    weights = r.constants[inputs[1]]
    if len(weights.shape) != 4 or options.get("dilations", [1, 1]) != [1, 1]:
        raise KeyError("a convolution of rows or volumes, or with dilation")
    if options.get("group", 1) > 1 and weights.shape[1] > 1:
        raise KeyError("groups of several channels")
    options.setdefault("kernel_shape", list(weights.shape[2:]))
    RULES["Conv"](r, inputs, output, options)


def elu(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    if options.get("alpha") != 1:
        raise KeyError("another alpha than TFLite's")
    r.write("elu", [r.tensors[inputs[0]]], output, r.shapes[inputs[0]])


def softmax(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    rank, axis = len(r.shapes[inputs[0]]), options.get("axis", -1)
    if axis % rank != (1 if rank == 4 else rank - 1):
        raise KeyError("a softmax along another axis than the channels")
    r.write("softmax", [r.tensors[inputs[0]]], output, r.shapes[inputs[0]], beta=1.0)


def pad(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    if options.get("mode", b"constant") != b"constant":
        raise KeyError("another mode")
    RULES["Pad"](r, inputs if len(inputs) > 2 else [*inputs, "zero"], output, options)


def prelu(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    shape = r.shapes[inputs[0]]
    slopes = np.broadcast_to(r.constants[inputs[1]].reshape(-1), (shape[-1],)).reshape(1, 1, -1)
    r.write("prelu", [r.tensors[inputs[0]], r.constant(inputs[1], slopes)], output, shape)


def split(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    raise KeyError("a split is read as slices")


def transpose_conv(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    weights, shape = r.constants[inputs[1]], r.shapes[inputs[0]]  # [I, O, KH, KW]
    if options.get("group", 1) != 1:
        raise KeyError("a depthwise deconvolution")
    stride, pads = options.get("strides", [1, 1]), options.get("pads", [0, 0, 0, 0])
    size = [(shape[1 + a] - 1) * stride[a] + weights.shape[2 + a] - pads[a] - pads[2 + a] for a in (0, 1)]
    same = [s * stride[a] for a, s in enumerate(shape[1:3])]
    if any(pads) and size != same:
        raise KeyError("a padding that TFLite does not have")
    wanted = (shape[0], *size, weights.shape[1])
    operands = [
        r.constant(f"{output}_shape", np.array(wanted, np.int32)),
        r.constant(inputs[1], weights.transpose(1, 2, 3, 0)),
        r.tensors[inputs[0]],
    ]
    if len(inputs) > 2:
        operands.append(r.constant(inputs[2], r.constants[inputs[2]]))
    padding = "same" if any(pads) else "valid"
    r.write("transpose_conv", operands, output, wanted, padding=padding, stride_h=stride[0], stride_w=stride[1])


CASE_RULES = {
    **RULES,
    **{kind: same_shape(operator) for kind, operator in _UNARY.items()},
    **{kind: pair(operator) for kind, operator in _PAIRS.items()},
    "Clip": clip,
    "Conv": conv,
    "ConvTranspose": transpose_conv,
    "DepthToSpace": depth_to_space,
    "Elu": elu,
    "PRelu": prelu,
    "Pad": pad,
    "Softmax": softmax,
    "MatMul": matmul,
    "ReduceMax": reduction("reduce_max"),
    "ReduceMean": reduction("mean"),
    "ReduceMin": reduction("reduce_min"),
    "ReduceSum": reduction("sum"),
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
}


@dataclass(frozen=True)
class Comparison:
    """One case in one mode: how many tensors of the tool had a counterpart, and what differed."""

    compared: int
    integers: int
    problems: list[str]


FUSED_ELSEWHERE = {
    "avgpool_pad": "its padding is none of TFLite's",
    "avgpool_pad_incl": "its padding is none of TFLite's",
    "concat_relu": "tflq writes the rectifier in front, the table has it behind",
    "hswish_pattern": "five nodes; TFLite has HARD_SWISH",
    "layernorm_pattern": "nine nodes in another order than TFLite's converter has",
    "pow2": "tflq writes a product",
}
"""Cases whose tensors tflq calls otherwise, because it writes the network otherwise."""


def case_names() -> list[str]:
    names = sorted(path.stem for path in data_path("cases", "tpu_mlir_more").glob("*.onnx"))
    return [name for name in names if name not in FUSED_ELSEWHERE]


def graph_of(name: str) -> Graph:
    """The float graph of a case; KeyError where no operator of TFLite is one of it, AssertionError: odd pads."""
    import onnx

    reader = OnnxReader(onnx.load(data_path("cases", "tpu_mlir_more") / f"{name}.onnx"), CASE_RULES)
    return reader.builder.build([reader.tensors[output] for output in reader.outputs])


def compared(name: str, mode: str) -> Comparison:
    """Quantise and run a case as the tool did."""
    folder = data_path("cases", "tpu_mlir_more")
    network = expand(graph_of(name))
    layers = _modes(network, folder / f"{name}.qtable")
    settings = parse_settings(TPU_MLIR.settings, [f"asymmetric={str(mode == 'asym').lower()}"], layers)
    table = parse_calibration_table((folder / f"{name}.table").read_text(encoding="utf-8"))
    options = read_options(LayerOptions, network, settings)
    graph = lower(quantise_network(network, for_the_tool(translate(network)), table, options), "tpu_mlir")
    with np.load(folder / f"{name}_{mode}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    inputs = [arrays[f"in/{graph.tensors[t].name}"] for t in graph.inputs]
    keep = [t for node in graph.nodes for t in node.outputs]
    feeds = [x.transpose(0, 1, 3, 4, 2) if x.ndim == 5 else x for x in inputs]
    values = Engine(graph).run([np.ascontiguousarray(x) for x in feeds], keep)
    ours = {graph.tensors[t].name: t for t in keep}
    described = {
        output["name"]: output
        for layer in json.loads((folder / f"{name}_{mode}.json").read_text(encoding="utf-8"))
        for output in layer["outputs"]
    }
    counts, problems = [0, 0], []
    for key, theirs in arrays.items():
        plain = key.removeprefix("tensor/").replace("_Softmax__softmax", "_Softmax")
        plain = plain if plain in ours else plain.replace("_PRelu", "_LeakyRelu")
        t = ours.get(plain) if key.startswith("tensor/") else None
        if t is None:
            continue
        tensor, stated = graph.tensors[t], described[key.removeprefix("tensor/")]
        counts[0] += 1
        counts[1] += tensor.dtype.is_integer
        if "scale" in stated and not (
            np.isclose(float(tensor.affine.scale[0]), stated["scale"], rtol=1e-6, atol=0)
            and int(tensor.affine.zero_point[0]) == stated["zero_point"]
        ):
            problems.append(f"{key}: type {tensor.quantisation}, the tool's {stated}")
        elif not _is_equal(values[t], theirs, tensor.dtype):
            problems.append(f"{key}: values")
    return Comparison(counts[0], counts[1], problems)


def _modes(graph: Graph, path: Path) -> list[str]:
    """The layers of a quantisation table as rules; a rectifier's convolution, too."""
    if not path.exists():
        return []
    written, rules = graph.producers(), []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, mode = line.split()
        (node,) = (n for n in graph.nodes if graph.tensors[n.outputs[0]].name == name.rsplit("_", 1)[0])
        rules.append(f"{node.name}:mode={mode}")
        if node.operator == "relu" and node.inputs[0] in written:
            rules.append(f"{graph.nodes[written[node.inputs[0]]].name}:mode={mode}")
    return rules


def main() -> int:
    """Compare every case that can be read; 1 where something differs."""
    counts = {"equal": 0, "differs": 0, "not an operator of TFLite": 0}
    for name in case_names():
        for mode in ("sym", "asym"):
            try:
                found = compared(name, mode)
            except (KeyError, AssertionError):
                counts["not an operator of TFLite"] += 1
                continue
            counts["differs" if found.problems else "equal"] += 1
            for problem in found.problems:
                sys.stdout.write(f"{name} {mode} {problem}\n")
    sys.stdout.write(", ".join(f"{count} {what}" for what, count in counts.items()) + "\n")
    return int(counts["differs"] > 0)


def _is_equal(mine: Array, theirs: Array, dtype: DType) -> bool:
    orders = [mine.reshape(theirs.shape)]
    if mine.ndim == 5:
        orders.append(mine.transpose(0, 1, 4, 2, 3).reshape(theirs.shape))
    if dtype.is_integer:  # of -128 the tool's simulator makes 128, which int8 has not
        inside = np.clip(theirs.astype(np.int64), dtype.minimum, dtype.maximum)
        return any(np.array_equal(order, inside) for order in orders)
    reals = theirs.astype(np.float64)
    # float16 to one unit in the last place, in a few elements: the order of sums
    return any(np.mean(order.astype(np.float64) != reals) <= 0.002 for order in orders) or any(
        theirs.dtype == np.float32 and np.allclose(order, reals, rtol=1e-5, atol=1e-5 * np.abs(reals).max())
        for order in orders
    )


if __name__ == "__main__":
    sys.exit(main())
