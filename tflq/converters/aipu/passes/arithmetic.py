"""Sums and products with constants: BatchNorm, weights and biases of the layer in front, tiled constants, Eltwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.aipu.passes.layers import CONSTANT, INPUT, Layers
from tflq.graph import Array, Node
from tflq.graph.operators import Trait, has_trait, with_traits
from tflq.graph.rewriting import Constant, Value, find_matches, is_near, op

X = Value("x")


def recognize_squares(layers: Layers) -> None:
    """X * x and x^2 are one; x^0.5 is a root."""
    for node in layers.nodes_of("mul"):
        if node.inputs[0] == node.inputs[1]:
            layers.become(node, "square", node.inputs[:1])
    for place in find_matches(layers, op("pow", X, Constant("power", single=False))):
        for power, operator in ((2.0, "square"), (0.5, "sqrt")):
            if is_near(place.constants["power"], power):
                layers.become(place.root, operator, place.root.inputs[:1])
    layers.remove_dead()


def recognize_squared_differences(layers: Layers) -> None:
    """The square of a difference that nothing else reads: SquaredDifference, named as the square."""
    pattern = op("square", op("sub", Value("a"), Value("b")))
    for place in find_matches(layers, pattern):
        layers.become(place.root, "squared_difference", (place.values["a"], place.values["b"]))
    layers.remove_dead()


def recognize_batch_norms(layers: Layers) -> None:
    """A product and a sum with constants of one number or one a channel: BatchNorm, named as the product."""
    product = op("mul", X, Constant("scale", single=False), name="product", shared=True)
    for operator in ("add", "sub"):
        for place in find_matches(layers, op(operator, product, Constant("shift", single=False))):
            node, product_node, x = place.root, place.nodes["product"], place.values["x"]
            scale, shift = (np.asarray(place.constants[key], np.float32) for key in ("scale", "shift"))
            is_second = layers.constant(node.inputs[1]) is not None
            if layers.uses(product_node.outputs[0]) != 1 or not is_second or not _by_channel(layers, x, scale, shift):
                continue
            channels = layers.shape(x)[-1]
            weights, biases = (np.broadcast_to(v.reshape(-1), (channels,)) for v in (scale, shift))
            layers.remove(node)
            biases = (np.float32(-1 if operator == "sub" else 1) * biases).astype(np.float32)
            batch_norm(layers, replace(product_node, outputs=node.outputs), x, weights, biases)
    layers.remove_dead()


def _by_channel(layers: Layers, x: int, *constants: Array) -> bool:
    shape = layers.shape(x)
    if not shape or layers.constant(x) is not None or layers.tensors[x].dtype.is_integer:
        return False
    return all(c.size in (1, shape[-1]) and (c.ndim < 2 or c.shape[-1] == shape[-1]) for c in constants)


def batch_norm(layers: Layers, node: Node, x: int, weights: Array, biases: Array) -> None:
    """Let a layer become BatchNorm of the last axis."""
    keys = {"axis": len(layers.shape(x)) - 1, "epsilon": 0.0}
    layers.become(node, "batch_norm", (x,), keys, {"weights": weights, "biases": biases}, node.outputs)


def remove_neutral_arithmetic(layers: Layers) -> None:
    """Products with ones, sums and differences with zeros of no more elements go."""
    for node in layers.nodes_of(*with_traits(Trait.AFFINE)):
        x = next((t for t in node.inputs if layers.constant(t) is None), None)
        constant = None if x is None else layers.constant(node.inputs[1 if node.inputs[0] == x else 0])
        if x is None or constant is None or constant.ndim > 1 or layers.shape(x) != layers.shape(node.outputs[0]):
            continue
        neutral_value = 1.0 if node.operator == "mul" else 0.0
        is_last = node.inputs[0] == x or has_trait(node, Trait.COMMUTATIVE)
        writer = layers.writer(x)
        if is_last and bool(np.all(constant == neutral_value)) and writer is not None:
            layers.bypass(node, node.inputs.index(x))
    layers.remove_dead()


def replace_divisions(layers: Layers) -> None:
    """A quotient by constants is a product with their reciprocals, in a new constant `<name>_new_const`."""
    for node in layers.nodes_of("div"):
        divisor = layers.constant(node.inputs[1])
        if divisor is not None and not np.issubdtype(divisor.dtype, np.integer):
            constant = layers.add_constant_layer(f"{node.name}_new_const", np.reciprocal(divisor))
            layers.become(node, "mul", (node.inputs[0], constant))
    layers.remove_dead()


def merge_reciprocals(layers: Layers) -> None:
    """A product with 1 / x is a quotient by x, named as the product; the reciprocal may have other readers.

    Source: Compass Parser, middle_passes.py, merge_special_div_mul.
    """
    reciprocal = op("div", Constant("one", (1.0,), single=False), Value("divisor"), shared=True)
    for place in find_matches(layers, op("mul", reciprocal, X)):
        layers.become(place.root, "div", (place.values["x"], place.values["divisor"]))
    layers.remove_dead()


def merge_constant_operands(layers: Layers) -> None:
    """Two products, or two sums, with constants one behind the other are one, with a new constant."""
    for operator in ("add", "mul"):
        inner = op(operator, X, Constant("a", single=False), name="first")
        for place in find_matches(layers, op(operator, inner, Constant("b", single=False))):
            x, first = place.values["x"], place.nodes["first"]
            if layers.constant(x) is not None:
                continue
            a, b = (np.asarray(place.constants[key], np.float32) for key in ("a", "b"))
            a = np.broadcast_to(a, layers.shape(first.outputs[0]))
            constant = layers.add_constant_layer(
                f"{first.name}_new_const", np.asarray(a * b if operator == "mul" else a + b)
            )
            is_first = layers.constant(place.root.inputs[0]) is not None
            layers.become(place.root, operator, (constant, x) if is_first else (x, constant))
    layers.remove_dead()


def repeat_operands(layers: Layers) -> None:
    """Operands that must have one shape: a smaller constant is repeated, `<name>_pre_tile`; a computed one is tiled.

    A constant of one number for one value keeps its name.
    """
    for node in layers.nodes_of("maximum", "minimum", "pow", "squared_difference", "logical", "where"):
        shape = np.broadcast_shapes(*(layers.shape(t) for t in layers.operands(node)))
        for position, t in enumerate(node.inputs):
            current = layers.node(node.name)
            if layers.shape(t) == shape or layers.writer(t) is None:
                continue
            constant = layers.constant(t)
            if constant is not None:
                wanted = np.broadcast_to(constant, shape)
                own = layers.settings.get(node.name, "")
                name, writer = f"{node.name}_pre_tile", layers.writer(t)
                if writer is not None and constant.size == wanted.size and layers.uses(t) == 1:
                    name = writer.name
                    layers.remove(writer)
                top = layers.add_constant_layer(name, wanted, own, stated=layers.tensors[t].range)
                layers.set_input(current, position, top)
                continue
            single = (1,) * (len(shape) - len(layers.shape(t))) + layers.shape(t)
            if single != layers.shape(t):
                current = layers.insert_layer_before(
                    current, position, "reshape", "_post_reshape", single, shape=single
                )
            if single != shape:
                repeats = tuple(n // s for n, s in zip(shape, single, strict=True))
                _tile(layers, current, position, shape, repeats)
    layers.remove_dead()


def _tile(layers: Layers, node: Node, position: int, shape: tuple[int, ...], repeats: tuple[int, ...]) -> None:
    source = node.inputs[position]
    top = layers.reshaped(source, shape)
    layers.add_layer(node, f"{node.name}_pre_tile", "tile", (source,), top, repeats=repeats)
    layers.set_input(node, position, top)


def choose_eltwise(layers: Layers) -> None:
    """Sums, products, maxima and minima of equal shapes are Eltwise; others Add, Sub, Mul."""
    for node in layers.nodes_of(*with_traits(Trait.AFFINE), *with_traits(Trait.EXTREME)):
        shapes = {layers.shape(t) for t in node.inputs}
        if len(shapes) == 1 or has_trait(node, Trait.EXTREME):
            keys = {"with_activation": "NONE", "method": node.operator[:3].upper()}
            layers.become(node, "eltwise", node.inputs, keys)
        else:
            layers.become(node, node.operator, node.inputs, {"with_activation": "NONE"})


def merge_equal_layers(layers: Layers) -> None:
    """Layers that say the same of the same values are one: the first in the order of the file."""
    seen: dict[object, Node] = {}
    for name in layers.order():
        node = layers.node(name)
        if node.operator == INPUT:
            continue
        own = [layers.tensors[t] for t in node.inputs if layers.writer(t) is None]
        constants = tuple((t.shape, t.dtype, np.asarray(t.data).tobytes()) for t in own)
        keys = tuple((key, str(value)) for key, value in node.attributes.items())
        stated = layers.tensors[node.outputs[0]].range if node.operator == CONSTANT else None
        sign = (node.operator, tuple(layers.operands(node)), constants, keys, len(node.outputs), stated)
        first = seen.setdefault(sign, node)
        if first is not node and node.intermediates is None:
            layers.unite(node, first)
    layers.remove_dead()
