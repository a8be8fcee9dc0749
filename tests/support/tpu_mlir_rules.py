"""How the ONNX operators of cases/tpu_mlir_more are written as TFLite's: NCHW -> NHWC, one rule an operator."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.onnx_graph import RULES, OnnxReader, last, same_shape
from tflq.graph import Array, DType

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
    if len(weights.shape) != 4:
        raise KeyError("a convolution of rows or volumes")
    dilation = options.get("dilations", [1, 1])
    if dilation == [1, 1] and (options.get("group", 1) == 1 or weights.shape[1] == 1):
        options.setdefault("kernel_shape", list(weights.shape[2:]))
        RULES["Conv"](r, inputs, output, options)
        return
    if any(options.get("pads", [0])) or options.get("strides", [1, 1]) != [1, 1]:
        raise KeyError("padding or strides beside dilation or groups")
    shape = r.shapes[inputs[0]]
    size = [n - (k - 1) * d for n, k, d in zip(shape[1:3], weights.shape[2:], dilation, strict=True)]
    operands = [r.tensors[inputs[0]], r.constant(inputs[1], weights.transpose(0, 2, 3, 1))]
    window = {"padding": "valid", "stride_h": 1, "stride_w": 1}
    window |= {"dilation_h_factor": dilation[0], "dilation_w_factor": dilation[1]}
    operands.append(r.constant(inputs[2], r.constants[inputs[2]]))
    r.write("conv_2d", operands, output, (shape[0], *size, weights.shape[0]), **window)


def place(r: OnnxReader, name: str, axis: int) -> int:
    """Where an axis of ONNX lies in the graph."""
    rank = len(r.shapes[name])
    return (0, 3, 1, 2)[axis % rank] if rank == 4 else axis % rank


def gather(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    axis, indices = place(r, inputs[0], options.get("axis", 0)), r.constants[inputs[1]].astype(np.int32)
    if indices.ndim == 0 and len(r.shapes[inputs[0]]) == 4:
        raise KeyError("what is left of an image in the order of channels first")
    shape = r.shapes[inputs[0]]
    new = (*shape[:axis], *indices.shape, *shape[axis + 1 :])
    operands = [r.tensors[inputs[0]], r.constant(inputs[1], indices)]
    r.write("gather", operands, output, new, axis=axis, batch_dims=0)


def tile(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    counts = last(tuple(r.constants[inputs[1]].tolist()))
    new = tuple(n * c for n, c in zip(r.shapes[inputs[0]], counts, strict=True))
    r.write("tile", [r.tensors[inputs[0]], r.constant(inputs[1], np.array(counts, np.int32))], output, new)


def expand_to(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    shape = last(tuple(r.constants[inputs[1]].tolist()))
    r.write("broadcast_to", [r.tensors[inputs[0]], r.constant(inputs[1], np.array(shape, np.int32))], output, shape)


def concat(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    source = next(name for name in inputs if name in r.tensors)
    axis = place(r, source, options["axis"])
    for name in inputs:
        if name in r.constants:
            r.shapes[name] = last(r.constants[name].shape)
    shapes = [r.shapes[name] for name in inputs]
    new = tuple(sum(s[a] for s in shapes) if a == axis else n for a, n in enumerate(shapes[0]))
    r.write("concatenation", [operand(r, name, 4) for name in inputs], output, new, axis=axis)


def split(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    shape, axis = r.shapes[inputs[0]], place(r, inputs[0], options.get("axis", 0))
    sizes = r.constants[inputs[1]].tolist()
    for name, size in zip(options["outputs"], sizes, strict=True):
        r.shapes[name] = tuple(size if a == axis else n for a, n in enumerate(shape))
        r.tensors[name] = r.builder.tensor(name, r.shapes[name], DType.FLOAT32)
    operands = [np.array(sizes, np.int32), np.array(axis, np.int32)]
    numbers = [r.constant(f"{output}_{i}", value) for i, value in enumerate(operands)]
    r.builder.node("split_v", [r.tensors[inputs[0]], *numbers], [r.tensors[n] for n in options["outputs"]])


def transpose(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    shape, order = r.shapes[inputs[0]], tuple(options["perm"])
    if len(shape) == 4:
        order = tuple((0, 3, 1, 2)[order[a]] for a in (0, 2, 3, 1))
    data = r.constant(f"{output}_order", np.array(order, np.int32))
    r.write("transpose", [r.tensors[inputs[0]], data], output, tuple(shape[a] for a in order))


def resize(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    mode = options.get("coordinate_transformation_mode", b"half_pixel")
    is_nearest = options["mode"] == b"nearest"
    if is_nearest and (mode, options.get("nearest_mode")) != (b"asymmetric", b"floor"):
        raise KeyError("another rounding than TFLite's")
    n, h, w, c = r.shapes[inputs[0]]
    _, _, *scales = r.constants[inputs[2]].tolist()
    size = (int(h * scales[0]), int(w * scales[1]))
    flags = {"align_corners": mode == b"align_corners", "half_pixel_centers": mode == b"half_pixel"}
    operands = [r.tensors[inputs[0]], r.constant(f"{output}_size", np.array(size, np.int32))]
    r.write(f"resize_{'nearest_neighbor' if is_nearest else 'bilinear'}", operands, output, (n, *size, c), **flags)


def gemm(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    if inputs[0] in r.images:
        RULES["Gemm"](r, inputs, output, options)
        return
    weights = r.constants[inputs[1]]
    operands = [r.tensors[inputs[0]], *(r.constant(n, r.constants[n]) for n in inputs[1:])]
    r.write("fully_connected", operands, output, (*r.shapes[inputs[0]][:-1], weights.shape[0]))


def log_softmax(r: OnnxReader, inputs: list[str], output: str, options: Options) -> None:
    rank = len(r.shapes[inputs[0]])
    if options.get("axis", -1) % rank != (1 if rank == 4 else rank - 1):
        raise KeyError("a softmax along another axis than the channels")
    r.write("log_softmax", [r.tensors[inputs[0]]], output, r.shapes[inputs[0]])


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
    "Concat": concat,
    "Conv": conv,
    "ConvTranspose": transpose_conv,
    "DepthToSpace": depth_to_space,
    "Elu": elu,
    "Expand": expand_to,
    "Gather": gather,
    "Gemm": gemm,
    "GlobalMaxPool": RULES["MaxPool"],
    "HardSwish": same_shape("hard_swish"),
    "LogSoftmax": log_softmax,
    "PRelu": prelu,
    "Pad": pad,
    "Softmax": softmax,
    "MatMul": matmul,
    "ReduceMax": reduction("reduce_max"),
    "ReduceMean": reduction("mean"),
    "ReduceMin": reduction("reduce_min"),
    "ReduceSum": reduction("sum"),
    "Slice": slice_,
    "Resize": resize,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Tile": tile,
    "Transpose": transpose,
}
