"""The quantized graph: layers in their types, and a conversion wherever two types meet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.passes.requirements import refuse
from tflq.converters.settings import Options
from tflq.converters.tpu_mlir.options import LayerOptions
from tflq.converters.tpu_mlir.passes.assembly import ARITHMETIC, Assembly, code_type, kind_of
from tflq.converters.tpu_mlir.passes.constants import convolution_constants, operand_constants, product_constants
from tflq.converters.tpu_mlir.passes.engines import AS_INPUT, F16, F32, INT8, Engine, Ranges, engine_of
from tflq.converters.tpu_mlir.passes.forms import PAIRS, Form, form_of
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Affine, Attributes, DType, Graph, Node, Tensor
from tflq.graph.operators import Trait, has_trait, with_traits
from tflq.graph.rewriting import fused_activation
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.registry import has_kernel

OWN_KERNELS = {
    F16: ("add", "batch_matmul", "sub", "layer_normalization", "leaky_relu", "mean", "prelu", "resize_bilinear"),
    F32: ("batch_matmul", "resize_bilinear"),
}
"""Operators with a kernel of their own in reals; others run in float32, in float16 between two roundings."""

UNROUNDED = {*with_traits(Trait.RESIZE), "layer_normalization"}
"""Operators in float16 whose float32 results TPU-MLIR's simulator does not round."""

_REALS = {F16: DType.FLOAT16, F32: DType.FLOAT32}


def assemble(
    source: Graph,
    ranges: Ranges,
    options: Options[LayerOptions],
) -> Graph:
    """Return the graph: float32 inputs (indices: integers) and outputs, as TPU-MLIR leaves them, and the layers.

    Args:
        source: fused float graph.
        ranges: names, ranges and types of its tensors.
        options: of the target.

    Raises:
        UnsupportedError: constants that have no integers; the message names the operator. Layers that are asked for in
            reals and have no rule there, all at once.
    """
    _refuse_unknown_reals(source, options)
    assembly = Assembly(source, ranges, options)
    graph = assembly.graph
    graph.name = source.name
    graph.inputs = tuple(assembly.add(t, source.tensors[t].dtype, None) for t in source.inputs)
    for index, node in enumerate(source.nodes):
        engine = engine_of(source, node, ranges, options)
        try:
            _layer(assembly, node, engine)
        except UnsupportedError as error:
            raise UnsupportedError(f"{source.where(index)}: {error}") from None
    graph.outputs = tuple(assembly.fetch(t, DType.FLOAT32, None, "") for t in source.outputs)
    return graph


def _refuse_unknown_reals(graph: Graph, options: Options[LayerOptions]) -> None:
    found = list[str]()
    for index, node in enumerate(graph.nodes):
        mode = options.of(node.name).mode
        if mode != INT8 and node.operator not in OWN_KERNELS[mode] and not has_kernel("float", node.operator):
            others = " or ".join(m for m in (INT8, F16) if m == INT8 or node.operator in OWN_KERNELS[m])
            found.append(
                f"{graph.where(index)}: mode={mode}, in which its rule in TPU-MLIR is not known; give it "
                f"mode={others}, or keep it outside"
            )
    refuse(found)


def _layer(assembly: Assembly, node: Node, engine: Engine) -> None:
    if engine.kind == AS_INPUT:
        _move(assembly, node)
    elif engine.kind != INT8:
        _real_layer(assembly, node, engine)
    elif has_trait(node, Trait.WEIGHTS):
        _filter(assembly, node)
    elif node.operator == "concatenation":
        _concatenation(assembly, node)
    elif node.operator in PAIRS:
        _pair(assembly, node, engine)
    else:
        _integer_layer(assembly, node, engine)


def _without_activation(node: Node) -> Attributes:
    """The clamp of a fused rectifier is the saturation of an unsigned output."""
    fused = node.attributes.get("fused_activation_function")
    return node.attributes if fused is None else node.attributes.updated(fused_activation_function="none")


def _copied(assembly: Assembly, t: int, rounded: bool = False) -> int:
    """Bring a constant over as it is, or its values rounded to float16."""
    if t == ABSENT:
        return ABSENT
    tensor = replace(assembly.source.tensors[t], range=None, extra=None)
    if rounded and tensor.data is not None and tensor.dtype is DType.FLOAT32:
        with np.errstate(over="ignore"):
            tensor = replace(tensor, data=tensor.data.astype(np.float16).astype(np.float32))
    return assembly.graph.add_tensor(tensor)


def _output(assembly: Assembly, node: Node) -> int:
    return _integers(assembly, node.outputs[0])


def _integers(assembly: Assembly, t: int) -> int:
    return assembly.add(t, code_type(assembly.types[t]), assembly.types[t], assembly.core(t))


def _is_computed(assembly: Assembly, t: int) -> bool:
    return t in assembly.made


def _move(assembly: Assembly, node: Node) -> None:
    """What moves data runs in the type that it finds, but what is permuted on the way becomes integers."""
    first, t = node.inputs[0], node.outputs[0]
    moved = assembly.made[first][0]
    if (t, first) in assembly.ranges.seen.operands and assembly.graph.tensors[moved].dtype.is_floating:
        moved = assembly.integers(first, assembly.names[t])
    source = assembly.graph.tensors[moved]
    affine = source.quantization if isinstance(source.quantization, Affine) else None
    inputs = (moved, *(_copied(assembly, other) for other in node.inputs[1:]))
    output = assembly.add(t, source.dtype, affine, assembly.core(t))
    assembly.unrounded.update({output} if moved in assembly.unrounded else ())
    assembly.append(node.operator, inputs, output, node.name, Engine(kind_of(source.dtype)), node.attributes)


def _integer_layer(assembly: Assembly, node: Node, engine: Engine) -> None:
    name = assembly.names[node.outputs[0]]
    inputs = [assembly.integers(t, name) if _is_computed(assembly, t) else _copied(assembly, t) for t in node.inputs]
    outputs = [_integers(assembly, t) for t in node.outputs]
    if node.operator == "padv2":
        inputs[2] = _padding_value(assembly, node)
    assembly.append(node.operator, tuple(inputs), outputs, node.name, engine, node.attributes)


def _pair(assembly: Assembly, node: Node, engine: Engine) -> None:
    """Two activations; beside a constant of several numbers that one in int8; one number stays as it is."""
    name, form = assembly.names[node.outputs[0]], form_of(assembly.source, node)
    inputs = []
    for t in node.inputs:
        tensor = assembly.source.tensors[t]
        if _is_computed(assembly, t):
            inputs.append(assembly.integers(t, name))
        elif form is Form.SCALAR:
            inputs.append(_copied(assembly, t))
        else:
            assert tensor.data is not None
            # what is subtracted has the scale of the result, so that its multiplier is 1
            scale = float(assembly.types[node.outputs[0]].scale[0]) if node.operator == "sub" else None
            codes, affine = operand_constants(tensor.data.astype(np.float32), scale)
            inputs.append(assembly.constant(f"{tensor.name}_i8", codes, code_type(affine), affine))
    assembly.append(node.operator, tuple(inputs), _output(assembly, node), node.name, engine, node.attributes)


def _padding_value(assembly: Assembly, node: Node) -> int:
    """Round half away(value / S + Z), saturated."""
    value, affine = assembly.source.tensors[node.inputs[2]], assembly.types[node.outputs[0]]
    assert value.data is not None
    dtype = code_type(affine)
    codes = round_half_away(value.data.astype(np.float64) / affine.scale[0] + affine.zero_point[0])
    return assembly.constant(value.name, np.clip(codes, dtype.minimum, dtype.maximum), dtype, affine)


def _concatenation(assembly: Assembly, node: Node) -> None:
    """Inputs of another type than the output are rescaled first, by nodes of their own."""
    t = node.outputs[0]
    name, affine = assembly.core(t), assembly.types[t]
    inputs = []
    for source in node.inputs:
        if not _is_computed(assembly, source):
            raise UnsupportedError("a constant is joined to activations; only activations can be")
        arriving = assembly.ranges.seen.operands.get((t, source), assembly.names[source])
        rescaled = f"{arriving}_to_{name}"
        codes = assembly.integers(source, rescaled)
        if assembly.types[source] != affine:
            _refuse_lost_product(assembly, source, codes, affine)
            new = assembly.add(source, code_type(affine), affine, rescaled)
            assembly.append("quantize", (codes,), new, rescaled, Engine(INT8, "another scale than the concatenation"))
            codes = new
        inputs.append(codes)
    assembly.append(node.operator, tuple(inputs), _output(assembly, node), node.name, Engine(INT8), node.attributes)


def _refuse_lost_product(assembly: Assembly, source: int, codes: int, affine: Affine) -> None:
    """TPU-MLIR puts a rescaling with zero points into the product in front of it, whose own multiplier it loses."""
    product = assembly.chains.writer(source)
    has_zero_point = any(int(a.zero_point[0]) for a in (assembly.types[source], affine))
    if product is None or product.operator != "fully_connected" or not has_zero_point:
        return
    if len(assembly.chains.readers(source)) == 1 and assembly.made[source][0] == codes:
        raise UnsupportedError(
            f"'{assembly.names[source]}' has another scale than the concatenation: TPU-MLIR would put the rescaling in "
            f"place of the product's own multiplier, which is wrong; use the symmetric mode, or mode=F16 for "
            f"{product.name}"
        )


def _filter(assembly: Assembly, node: Node) -> None:
    transposed = node.operator == "transpose_conv"
    places = (2, 1, 3) if transposed else (0, 1, 2)  # of the input, the weights and the bias
    name, x = assembly.names[node.outputs[0]], node.inputs[places[0]]
    weights, bias = (_reals(assembly, node, p) for p in places[1:])
    assert weights is not None
    axis = 3 if node.operator == "depthwise_conv_2d" else 0
    affine = assembly.types[x]
    if node.operator == "fully_connected":
        made = product_constants(weights, bias, affine)
    else:
        made = convolution_constants(weights, bias, axis, affine)
    per_channel = axis if made.scale.size > 1 else None
    zeros = np.zeros(made.scale.size, np.int64)
    signed = made.dtype is DType.INT8
    bias_scale = made.scale * made.input_scale
    inputs = [
        assembly.integers(x, name),
        assembly.constant(f"{name}_filter", made.codes, made.dtype, Affine(made.scale, zeros, per_channel, 8, signed)),
        assembly.constant(
            f"{name}_bias", made.bias, DType.INT32, Affine(bias_scale, zeros, None if per_channel is None else 0, 32)
        ),
    ]
    if transposed:
        inputs = [_copied(assembly, node.inputs[0]), inputs[1], inputs[0], inputs[2]]
    output = _output(assembly, node)
    assembly.append(node.operator, tuple(inputs), output, node.name, Engine(INT8), _without_activation(node))


def _reals(assembly: Assembly, node: Node, position: int) -> np.ndarray | None:
    if len(node.inputs) <= position or node.inputs[position] == ABSENT:
        return None
    data = assembly.source.tensors[node.inputs[position]].data
    assert data is not None
    return data.astype(np.float32)


def _real_layer(assembly: Assembly, node: Node, engine: Engine) -> None:
    """A layer in float16 or float32; one without a kernel in float16 runs in float32, and its result is rounded."""
    name, dtype = assembly.names[node.outputs[0]], _REALS[engine.kind]
    own = node.operator in OWN_KERNELS[engine.kind]
    inputs = []
    for position, source in enumerate(node.inputs):
        if source == ABSENT or not _is_computed(assembly, source):
            # biases of convolutions stay float32, and so does one number beside an activation
            keeps = engine.kind == F32 or (position == 2 and node.operator != "fully_connected")
            keeps = keeps or (own and not (node.operator in PAIRS and _is_array(assembly, source)))
            inputs.append(_copied(assembly, source, not keeps))
            continue
        if assembly.source.tensors[source].dtype.is_integer:  # indices
            inputs.append(assembly.made[source][0])
            continue
        x = assembly.operand(source, dtype, node)
        inputs.append(x if own or engine.kind == F32 else _widened(assembly, x, f"{assembly.names[source]}{name}_wide"))
    if own or engine.kind == F32 or node.operator in UNROUNDED:
        arithmetic = ARITHMETIC if own else "float"
        outputs = [assembly.result(y, DType.FLOAT32 if node.operator in UNROUNDED else dtype) for y in node.outputs]
        assembly.unrounded.update(outputs if engine.kind == F16 and node.operator in UNROUNDED else ())
        assembly.append(node.operator, tuple(inputs), outputs, node.name, engine, _rectified(node), arithmetic)
    else:
        shapes = [(assembly.names[y], assembly.source.tensors[y].shape) for y in node.outputs]
        wide = [assembly.graph.add_tensor(Tensor(f"{called}_wide", shape, DType.FLOAT32)) for called, shape in shapes]
        assembly.append(node.operator, tuple(inputs), wide, node.name, engine, _rectified(node), "float")
        for y, x in zip(node.outputs, wide, strict=True):
            assembly.append("dequantize", (x,), assembly.result(y, dtype), f"{assembly.names[y]}_f16", Engine(F16))
    for y in node.outputs:
        assembly.settle(y)


def _is_array(assembly: Assembly, t: int) -> bool:
    data = assembly.source.tensors[t].data
    return data is not None and not np.all(data == data.reshape(-1)[0])


def _rectified(node: Node) -> Attributes:
    """The bound of a fused rectifier is not stored: in reals it is max(x, 0)."""
    fused = fused_activation(node)
    return node.attributes if fused == "none" else node.attributes.updated(fused_activation_function="relu")


def _widened(assembly: Assembly, x: int, name: str) -> int:
    new = assembly.graph.add_tensor(Tensor(name, assembly.graph.tensors[x].shape, DType.FLOAT32))
    assembly.append("dequantize", (x,), new, name, Engine(F32))
    return new
