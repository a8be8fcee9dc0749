"""Random int8 networks of element-wise operators, alone and beside filters, as .tflite files; a seed, the same files.

Chains, branches and values read several times; broadcasting, constants of one element and tensors; filters, pools,
moves and activations between them. Ranges come from the float network on random samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.passes.rewrite import with_attributes
from tflq.converters.tflite import model_to_bytes
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder, Model, Range, Tensor

_SHAPE = (1, 6, 5, 4)
_SMALL = ((1, 1, 1, 4), (1, 6, 5, 1), (1, 1, 5, 4))
_NUMBERS = (-3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 5.0)


@dataclass(frozen=True)
class Drawn:
    """A value: its tensor, whether it is known to be 0 or more, and its shape."""

    tensor: int
    shape: tuple[int, ...]
    positive: bool = False


class Drawer:
    """Draws one network in float; each choice comes from one generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.builder, self.inputs = rng, GraphBuilder("expressions"), list[tuple[float, float]]()

    def pick(self, *choices: str) -> str:
        """One of them."""
        return choices[int(self.rng.integers(len(choices)))]

    def input(self, shape: tuple[int, ...]) -> Drawn:
        """A graph input with a range of its own."""
        low, high = (
            float(v)
            for v in (
                self.rng.choice([-4.0, -2.0, -1.0, -0.3, 0.0, 0.5]),
                self.rng.choice([0.8, 1.5, 2.0, 5.0]),
            )
        )
        self.inputs.append((low, high))
        tensor = self.builder.input(f"x{len(self.inputs)}", shape, DType.FLOAT32)
        return Drawn(tensor, shape, low >= 0)

    def number(self) -> Drawn:
        """A constant of one element."""
        value = np.array([self.rng.choice(_NUMBERS)], np.float32)
        return self._constant(value, "number")

    def array(self, *shape: int, spread: float = 1.0) -> Drawn:
        """A constant tensor."""
        return self._constant((self.rng.standard_normal(shape) * spread).astype(np.float32), "constant")

    def _constant(self, data: Array, name: str) -> Drawn:
        tensor = self.builder.constant(f"{name}{len(self.builder.build([]).tensors)}", data)
        return Drawn(tensor, data.shape, bool(np.all(np.asarray(data, np.float32) >= 0)))

    def apply(self, operator: str, *operands: Drawn, positive: bool = False, **attributes: object) -> Drawn:
        """An element-wise operator."""
        shape = tuple(int(n) for n in np.broadcast_shapes(*(o.shape for o in operands)))
        written = self.builder.add(operator, [o.tensor for o in operands], shape, DType.FLOAT32, **attributes)  # type: ignore[arg-type]
        return Drawn(written, shape, positive)

    def bounded(self, x: Drawn, limit: float = 2.0) -> Drawn:
        """min(x, limit)."""
        return self.apply("minimum", x, self._constant(np.array([limit], np.float32), "limit"))

    def step(self, pool: list[Drawn]) -> Drawn:
        """One operator on values of the pool."""
        a, b = (pool[int(self.rng.integers(len(pool)))] for _ in range(2))
        kind = self.pick(*_KINDS)
        return _KINDS[kind](self, a, b)

    def filter(self, x: Drawn) -> Drawn:
        """A convolution, perhaps with a pool, or a fully connected layer."""
        if len(x.shape) != 4 or x.shape[1] < 3 or x.shape[2] < 3:
            return self.apply("abs", x, positive=True)
        channels = x.shape[3]
        size = 3 if self.rng.random() < 0.5 else 1
        if self.rng.random() < 0.25:
            w, b = self.array(1, 3, 3, channels, spread=0.4), self.array(channels, spread=0.3)
            name, out = "depthwise_conv_2d", channels
        else:
            out = x.shape[3] if self.rng.random() < 0.7 else int(self.rng.integers(2, 7))
            w, b = self.array(out, size, size, channels, spread=0.4), self.array(out, spread=0.3)
            name = "conv_2d"
        act = self.pick("none", "none", "none", "relu")
        written = self.builder.add(
            name,
            [x.tensor, w.tensor, b.tensor],
            (*x.shape[:3], out),
            DType.FLOAT32,
            padding="same",
            stride_h=1,
            stride_w=1,
            dilation_h_factor=1,
            dilation_w_factor=1,
            fused_activation_function=act,
        )
        return Drawn(written, (*x.shape[:3], out), act == "relu")

    def dense(self, x: Drawn) -> Drawn:
        """A fully connected layer on all elements."""
        size, out = int(np.prod(x.shape)), int(self.rng.integers(3, 9))
        flat = self.reshape(x, (1, size))
        w, b = self.array(out, size, spread=0.4), self.array(out, spread=0.3)
        operands = [flat.tensor, w.tensor, b.tensor]
        written = self.builder.add("fully_connected", operands, (1, out), DType.FLOAT32, keep_num_dims=False)
        return Drawn(written, (1, out))

    def reshape(self, x: Drawn, shape: tuple[int, ...]) -> Drawn:
        """The same elements in another shape."""
        wanted = self.builder.constant(f"shape_{x.tensor}_{len(shape)}", np.array(shape, np.int32))
        written = self.builder.add("reshape", [x.tensor, wanted], shape, DType.FLOAT32, new_shape=shape)
        return Drawn(written, shape, x.positive)

    def join(self, a: Drawn, b: Drawn) -> Drawn:
        """A concatenation of channels, or softmax where shapes do not allow it."""
        if a.shape[:-1] != b.shape[:-1]:
            return Drawn(self.builder.add("softmax", [a.tensor], a.shape, DType.FLOAT32, beta=1.0), a.shape, True)
        shape = (*a.shape[:-1], a.shape[-1] + b.shape[-1])
        operands = [a.tensor, b.tensor]
        return Drawn(
            self.builder.add("concatenation", operands, shape, DType.FLOAT32, axis=len(shape) - 1),
            shape,
            a.positive and b.positive,
        )

    def pool(self, x: Drawn) -> Drawn:
        """A largest value of 2x2."""
        if len(x.shape) != 4 or min(x.shape[1:3]) < 2:
            return self.apply("exp", self.bounded(x), positive=True)
        shape = (x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3])
        written = self.builder.add(
            "max_pool_2d",
            [x.tensor],
            shape,
            DType.FLOAT32,
            padding="valid",
            stride_h=2,
            stride_w=2,
            filter_height=2,
            filter_width=2,
        )
        return Drawn(written, shape, x.positive)


_Kind = Callable[[Drawer, Drawn, Drawn], Drawn]


def _root(operator: str) -> _Kind:
    def draw(d: Drawer, a: Drawn, _b: Drawn) -> Drawn:
        if operator == "rsqrt":
            one = d._constant(np.array([1.0], np.float32), "one")
            return d.apply("rsqrt", d.apply("maximum", a, one, positive=True), positive=True)
        return d.apply(operator, a if a.positive else d.apply("abs", a, positive=True), positive=True)

    return draw


def _pair(operator: str) -> _Kind:
    def draw(d: Drawer, a: Drawn, b: Drawn) -> Drawn:
        chance = d.rng.random()
        other = d.number() if chance < 0.3 or a is b else d.array(4) if chance < 0.4 and a.shape[-1] == 4 else b
        try:
            np.broadcast_shapes(a.shape, other.shape)
        except ValueError:
            other = d.number()
        if operator == "div":
            one = d._constant(np.array([1.0], np.float32), "one")
            other = d.apply("maximum", other, one, positive=True) if len(other.shape) > 1 else one
        # An addition of one number in front of an activation is refused.
        operator_ = "sub" if operator == "add" and chance < 0.3 else operator
        first, second = (other, a) if d.rng.random() < 0.2 and operator != "div" else (a, other)
        both = first.positive and second.positive and operator_ in ("add", "mul", "div", "maximum", "minimum")
        return d.apply(operator_, first, second, positive=both)

    return draw


def _power(d: Drawer, a: Drawn, _b: Drawn) -> Drawn:
    two = d._constant(np.array([2.0], np.float32), "two")
    return d.apply("pow", a, two, positive=True)


def _unary(operator: str, positive: bool = False) -> _Kind:
    return lambda d, a, _b: d.apply(operator, a, positive=positive)


_KINDS: dict[str, _Kind] = {
    "exp": lambda d, a, _b: d.apply("exp", d.bounded(a), positive=True),
    "abs": _unary("abs", True),
    "sin": _unary("sin"),
    "cos": _unary("cos"),
    "tanh": lambda d, a, b: d.apply("tanh", d.apply("mul", a, b if b.shape == a.shape else a)),
    "logistic": lambda d, a, b: d.apply("logistic", d.apply("sub", a, b if b.shape == a.shape else a), positive=True),
    "sqrt": _root("sqrt"),
    "rsqrt": _root("rsqrt"),
    "pow": _power,
    **{name: _pair(name) for name in ("add", "sub", "mul", "div", "maximum", "minimum")},
    "product": _pair("mul"),
    "difference": _pair("sub"),
    "larger": _pair("maximum"),
    "smaller": _pair("minimum"),
    "hard_swish": _unary("hard_swish"),
    "filter": lambda d, a, _b: d.filter(a),
    "filter again": lambda d, a, _b: d.filter(a),
    "pooled filter": lambda d, a, _b: d.pool(d.filter(a)),
    "dense": lambda d, a, _b: d.dense(a),
    "flat": lambda d, a, _b: d.reshape(a, (1, int(np.prod(a.shape)))),
    "join": lambda d, a, b: d.join(a, b),
}


def draw(seed: int, index: int) -> bytes:
    """Return one network as an int8 .tflite file."""
    while True:
        rng = np.random.default_rng([seed, index])
        found = _network(rng)
        if found is not None:
            return model_to_bytes(Model([found]))
        index += 1_000_003


def _network(rng: np.random.Generator) -> Graph | None:
    d = Drawer(rng)
    pool = [d.input(_SHAPE)]
    for _ in range(int(rng.integers(0, 3))):
        pool.append(d.input(_SHAPE if rng.random() < 0.6 else _SMALL[int(rng.integers(3))]))
    for _ in range(int(rng.integers(1, 7))):
        pool.append(d.step(pool[-4:]))
    last = pool[-1]
    if last.shape != _SHAPE and len(last.shape) < 4:
        return None
    used = d.builder.build([last.tensor])
    readers = used.consumers()
    written = [t for n in used.nodes for t in n.outputs]
    loose = [t for t in written if t not in readers]
    if any(t not in readers for t in used.inputs):
        return None
    graph = d.builder.build(loose)
    samples = [
        rng.uniform(low, high, (64, *graph.tensors[t].shape))
        for t, (low, high) in zip(graph.inputs, d.inputs, strict=True)
    ]
    ranged = calibrate(graph, [x.astype(np.float32) for x in samples], StatisticsOptions())
    sizes = [
        float(np.abs([t.range.minimum[0], t.range.maximum[0]]).max()) for t in ranged.tensors if t.range is not None
    ]
    return _quantized(ranged) if max(sizes) < 400 and min(sizes) > 1e-3 else None


def _quantized(graph: Graph) -> Graph:
    """Give computed tensors int8 types of their ranges, filters int8 weights, constants of one element scale 1."""
    result = graph.copy()
    graph = _with_shared_ranges(graph)
    for t, tensor in enumerate(graph.tensors):
        if tensor.range is not None:
            result.tensors[t] = replace(tensor, dtype=DType.INT8, quantization=_type(tensor), range=None)
    for index, node in enumerate(graph.nodes):
        if node.operator == "depthwise_conv_2d":
            result.nodes[index] = with_attributes(node, depth_multiplier=1)
        if node.operator in ("conv_2d", "depthwise_conv_2d", "fully_connected"):
            axis = 3 if node.operator == "depthwise_conv_2d" else 0
            w, b = (graph.tensors[t] for t in node.inputs[1:])
            _weights(result, node.inputs[1], w, axis)
            scale = result.tensors[node.inputs[0]].affine.scale * result.tensors[node.inputs[1]].affine.scale
            affine = Affine(scale.astype(np.float32), np.zeros(len(scale), np.int64), 0, 32, True)
            assert b.data is not None
            data: Array = np.round(b.data.astype(np.float64) / affine.scale).astype(np.int32)
            result.tensors[node.inputs[2]] = Tensor(b.name, data.shape, DType.INT32, affine, data=data)
    for t, tensor in enumerate(result.tensors):
        if tensor.is_constant and tensor.dtype is DType.FLOAT32:
            result.tensors[t] = _constant(tensor)
    return result


def _with_shared_ranges(graph: Graph) -> Graph:
    """What concatenations, pools and reshapes connect has one range, as TFLite's kernels want it."""
    result = graph.copy()
    for _ in graph.nodes:
        for node in graph.nodes:
            if node.operator not in ("concatenation", "max_pool_2d", "reshape"):
                continue
            joined = [t for t in (*node.inputs, *node.outputs) if result.tensors[t].range is not None]
            ranges = [r for t in joined if (r := result.tensors[t].range) is not None]
            low, high = np.min([r.minimum for r in ranges], axis=0), np.max([r.maximum for r in ranges], axis=0)
            for t in joined:
                result.tensors[t] = replace(result.tensors[t], range=Range(low, high))
    return result


def _type(tensor: Tensor) -> Affine:
    assert tensor.range is not None
    low, high = min(float(tensor.range.minimum[0]), 0.0), max(float(tensor.range.maximum[0]), 0.0)
    scale = np.float32(max(high - low, 1e-6) / 255)
    return Affine.per_tensor(scale, int(np.clip(np.round(-128 - low / float(scale)), -128, 127)))


def _weights(graph: Graph, t: int, weights: Tensor, axis: int) -> None:
    assert weights.data is not None
    largest = np.abs(weights.data).max(axis=tuple(a for a in range(weights.data.ndim) if a != axis))
    scale = (largest / 127).astype(np.float32)
    shape = [-1 if a == axis else 1 for a in range(weights.data.ndim)]
    data = np.clip(np.round(weights.data / scale.reshape(shape)), -127, 127).astype(np.int8)
    affine = Affine(scale, np.zeros(len(scale), np.int64), axis, 8, True)
    graph.tensors[t] = Tensor(weights.name, data.shape, DType.INT8, affine, data=data)


def _constant(tensor: Tensor) -> Tensor:
    assert tensor.data is not None
    affine = Affine.per_tensor(np.float32(1), 0)
    if tensor.size > 1:
        low, high = min(float(tensor.data.min()), 0.0), max(float(tensor.data.max()), 0.0)
        scale = np.float32((high - low) / 255)
        affine = Affine.per_tensor(scale, int(np.round(-128 - low / float(scale))))
    real = tensor.data.astype(np.float64)
    data = np.clip(np.round(real / affine.scale) + affine.zero_point, -128, 127).astype(np.int8)
    return Tensor(tensor.name, data.shape, DType.INT8, affine, data=data)


def write(seed: int, count: int, folder: Path) -> list[Path]:
    """Write `count` networks into a folder; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"expression_{seed}_{index}.tflite" for index in range(count)]
    for index, path in enumerate(paths):
        if not path.exists():
            path.write_bytes(draw(seed, index))
    return paths
