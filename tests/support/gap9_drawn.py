"""Small int8 networks for GAP9, drawn from a seed: what its passes rewrite and its rules type, side by side.

Each is a few pieces in a row on maps of some twenty pixels, whose ranges are drawn, too: a filter of any form, pools,
what a filter's fusion takes along, constants behind filters, branches that join, slices, moves, reductions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from tests.support.gap9_nets import Limits, Net, encoding
from tflq.graph import Affine, Attribute, DType, Graph

Shape = tuple[int, ...]
LARGEST_MAP = 200
SHAPES = ((1, 5, 6, 4), (1, 7, 4, 3), (1, 6, 6, 2), (1, 4, 7, 4), (1, 9, 3, 4), (1, 1, 9, 4), (1, 8, 1, 2))


class Drawn(Net):
    """Draws pieces; each takes a map and returns one."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng([9, seed])
        super().__init__(self.between(), self.pick(*SHAPES), seed)
        self.others: list[int] = []

    def pick(self, *choices: Any) -> Any:
        """Return one of them."""
        return choices[int(self.random.integers(len(choices)))]

    def between(self) -> Limits:
        """Return a range: about 0, from 0 on, to 6, or beside 0."""
        top = float(np.float32(self.random.uniform(0.5, 5)))
        low = -float(np.float32(self.random.uniform(0.5, 5)))
        found: Limits = self.pick((low, top), (low, top), (low, top), (-top, top), (0.0, top), (0.0, 6.0), (low, 0.25))
        return found

    def number(self, value: float, shape: Shape = (1,)) -> int:
        """Add a constant of one element."""
        kind = Affine.per_tensor(np.float32(abs(value) / 127), 0)
        return self.builder.constant("number", np.full(shape, np.sign(value) * 127, np.int8), kind)

    def row(self, channels: int, shape: Shape) -> int:
        """Add a constant of a number a channel."""
        codes = self.random.integers(-127, 128, channels).astype(np.int8).reshape(shape)
        return self.builder.constant("row", codes, Affine.per_tensor(np.float32(0.02), 0))

    def indices(self, *values: int) -> int:
        """Add a constant of indices."""
        return self.builder.constant("indices", np.array(values, np.int32))

    def weights(self, shape: Shape, axis: int) -> int:
        """Add weights: a scale a channel, or one for all."""
        codes = self.random.integers(-127, 128, shape).astype(np.int8)
        count = shape[axis] if self.random.random() < 0.8 else 1
        scales = self.random.uniform(0.002, 0.03, count).astype(np.float32)
        return self.builder.constant("w", codes, Affine(scales, np.zeros(count, np.int64), axis if count > 1 else None))

    def filter(self, x: int, limits: Limits | None = None, activation: str | None = None) -> int:
        """Add a convolution of any form."""
        n, h, w, c = self.shapes[x]
        depth = self.random.random() < 0.25
        kernel = self.pick((1, 1), (3, 3), (3, 3), (1, 3), (5, 1), (2, 2), (3, 5))
        padding = self.pick("same", "same", "valid")
        stride, dilation = self.pick((1, 1), (1, 1), (2, 2), (1, 2)), self.pick((1, 1), (1, 1), (1, 1), (2, 2))
        dilation = dilation if stride == (1, 1) else (1, 1)
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        if padding == "valid" and (reach[0] > h or reach[1] > w):
            padding = "same"
        size = [-(-(n if padding == "same" else n - r + 1) // s) for n, r, s in zip((h, w), reach, stride, strict=True)]
        options: dict[str, Attribute] = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
        options |= {"dilation_h_factor": dilation[0], "dilation_w_factor": dilation[1]}
        options["fused_activation_function"] = activation or self.pick("none", "none", "relu", "relu6")
        if depth:
            multiplier = self.pick(1, 1, 1, 2)
            out, weights = c * multiplier, self.weights((1, *kernel, c * multiplier), 3)
            options["depth_multiplier"] = multiplier
        else:
            groups = 2 if c % 2 == 0 and self.random.random() < 0.1 else 1
            out = self.pick(4, 4, 6)
            weights = self.weights((out, *kernel, c // groups), 0)
        name = "depthwise_conv_2d" if depth else "conv_2d"
        return self.add(name, [x, weights, self._bias(out)], (n, *size, out), limits or self.between(), **options)

    def plain(self, x: int, outputs: int = 0, activation: str = "none") -> int:
        """Add a convolution of 1x1 or 3x3 that keeps the map."""
        channels = outputs or self.shapes[x][3]
        return self.conv(x, self.between(), self.pick((1, 1), (3, 3)), channels, activation)

    def maybe(self, x: int, activation: str = "none") -> int:
        """Add such a convolution, or none."""
        return self.plain(x, activation=activation) if self.random.random() < 0.6 else x

    def filtered(self, x: int) -> int:
        """A filter."""
        return self.filter(x)

    def curved(self, x: int) -> int:
        """A filter, or none, and an activation."""
        host = self.filter(x, activation="none") if self.random.random() < 0.6 else x
        name = self.pick("relu", "relu6", "leaky_relu", "hard_swish", "logistic", "tanh")
        limits = {"logistic": (0.0, 1.0), "tanh": (-1.0, 1.0), "relu6": (0.0, 6.0), "relu": (0.0, 3.5)}
        options = {"alpha": self.pick(0.1, 0.25)} if name == "leaky_relu" else {}
        return self.unary(name, host, limits.get(name, self.between()), **options)

    def hard(self, x: int) -> int:
        """A hard sigmoid of three operators or two."""
        host = self.maybe(x)
        if self.random.random() < 0.5:
            host = self.binary("add", host, self.number(3.0), (-1.0, 6.5))
        bounded = self.unary("relu6", host, (0.0, 6.0))
        return self.binary("mul", bounded, self.number(1 / 6), (0.0, 1.0))

    def pooled(self, x: int) -> int:
        """A filter and a pool, or a pool, and a ReLU between or behind."""
        host = self.filter(x) if self.random.random() < 0.6 else x
        n, h, w, c = self.shapes[host]
        whole = self.random.random() < 0.2
        kernel = (h, w) if whole else self.pick((2, 2), (3, 3), (1, 2), (2, 1))
        stride = self.pick((1, 1), kernel) if whole else self.pick((1, 1), (2, 2), kernel)
        padding = "valid" if whole or (h >= kernel[0] and w >= kernel[1] and self.random.random() < 0.6) else "same"
        cut = [k - 1 if padding == "valid" else 0 for k in kernel]
        size = [-(-(n - lost) // s) for n, lost, s in zip((h, w), cut, stride, strict=True)]
        options: dict[str, Attribute] = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
        options |= {"filter_height": kernel[0], "filter_width": kernel[1]}
        options["fused_activation_function"] = self.pick("none", "none", "none", "relu")
        name = self.pick("max_pool_2d", "max_pool_2d", "average_pool_2d")
        limits = self.limits[host] if name == "max_pool_2d" else self.pick(self.limits[host], self.between())
        pool = self.add(name, [host], (n, *size, c), limits, **options)
        return self.unary("relu", pool, (0.0, max(0.1, limits[1]))) if self.random.random() < 0.25 else pool

    def summed(self, x: int) -> int:
        """An Add, Sub or Mul of two branches."""
        a, b = self.plain(x), self.maybe(x)
        first, second = self.pick((a, b), (b, a))
        name = self.pick("add", "add", "sub", "mul")
        found = self.binary(name, first, second, self.between(), self.pick("none", "none", "relu", "relu6"))
        if self.random.random() < 0.8:
            return found
        return self.unary(self.pick("relu", "tanh", "hard_swish"), found, (0.0, 3.0))

    def shifted(self, x: int) -> int:
        """A constant added to, taken from or multiplied with what a filter writes, or something else."""
        host = self.pick(lambda: self.filter(x, activation="none"), lambda: self.filter(x), lambda: x)()
        channels = self.shapes[host][3]
        operand = self.pick(
            lambda: self.number(self.pick(1.0, -2.0, 0.5)),
            lambda: self.row(channels, (channels,)),
            lambda: self.row(channels, (1, 1, 1, channels)),
            lambda: self.number(0.75, (1, 1, 1, 1)),
        )()
        name = self.pick("add", "add", "add", "sub", "mul")
        pair = (operand, host) if name != "sub" and self.random.random() < 0.3 else (host, operand)
        options = {"fused_activation_function": self.pick("none", "none", "relu")}
        return self.add(name, list(pair), self.shapes[host], self.between(), **options)

    def joined(self, x: int) -> int:
        """Branches, a concatenation, and a pool or an activation behind it."""
        limits = self.between()
        ends = [self.plain(x, self.pick(2, 4), self.pick("none", "relu")) for _ in range(self.pick(1, 2, 2))]
        ends = self.pick([*ends, self.maybe(x)], [*ends, x], [x, *ends])
        found = self.join(ends, limits)
        end = self.random.random()
        if end < 0.2 and min(self.shapes[found][1:3]) > 1:
            return self.pool(found, limits)
        if end < 0.4:
            return self.unary(self.pick("relu", "hard_swish"), found, (0.0, 2.5))
        return self.plain(found, 4) if end < 0.8 else found

    def parallel(self, x: int) -> int:
        """Convolutions side by side that become one."""
        ends = [self.conv(x, self.between(), (1, 1), self.pick(4, 4, 3), self.pick("none", "none", "relu"))
                for _ in range(self.pick(2, 3))]  # fmt: skip
        if len({self.shapes[t] for t in ends}) == 1 and self.random.random() < 0.5:
            return self.binary("add", ends[0], ends[-1], self.between())
        return self.join(ends, self.between())

    def sliced(self, x: int) -> int:
        """A slice along an axis, or along two, or a split."""
        host = self.maybe(x)
        shape = self.shapes[host]
        axis = self.pick(*[a for a in (1, 2, 3) if shape[a] > 1])
        if shape[axis] % 2 == 0 and self.random.random() < 0.25:
            half = tuple(n // 2 if a == axis else n for a, n in enumerate(shape))
            return self._split(host, axis, half)
        first = int(self.random.integers(shape[axis]))
        count = int(self.random.integers(1, shape[axis] - first + 1))
        begin, end = [0, 0, 0, 0], list(shape)
        begin[axis], end[axis] = first, first + count
        size = tuple(e - b for b, e in zip(begin, end, strict=True))
        limits = self.limits[host]
        if self.random.random() < 0.5:
            return self.add("slice", [host, self.indices(*begin), self.indices(*size)], size, limits)
        inputs = [host, self.indices(*begin), self.indices(*end), self.indices(1, 1, 1, 1)]
        masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
        return self.add("strided_slice", inputs, size, limits, **masks)

    def _split(self, host: int, axis: int, half: Shape) -> int:
        limits = self.limits[host]
        place = self.builder.constant("axis", np.array(axis, np.int32))
        a, b = (self.builder.tensor(f"half{k}_{host}", half, DType.INT8, encoding(limits)) for k in range(2))
        self.builder.node("split", [place, host], [a, b], num_splits=2)
        for t in (a, b):
            self.shapes[t], self.limits[t] = half, limits
        self.others.append(self.plain(b))
        return a

    def moved(self, x: int) -> int:
        """Reshapes there and back, or a transpose there and back."""
        host = self.maybe(x)
        n, h, w, c = self.shapes[host]
        limits = self.limits[host]
        flat = self.pick((n, h * w, c), (n, 1, h * w, c), (n, h * w * c))
        y = self.add("reshape", [host, self.indices(*flat)], flat, limits)
        if len(flat) == 4 and self.random.random() < 0.5:
            return self.plain(y)
        if self.random.random() < 0.4:
            y = self.unary("relu", y, (0.0, 2.0))
        return self.add("reshape", [y, self.indices(n, h, w, c)], (n, h, w, c), self.limits[y])

    def squeezed(self, x: int) -> int:
        """A reduction that weighs the channels, or is a branch of its own."""
        host = self.maybe(x, self.pick("none", "relu"))
        n, _, _, c = self.shapes[host]
        name = self.pick("mean", "mean", "sum", "reduce_max")
        pixel = self.add(name, [host, self.indices(1, 2)], (n, 1, 1, c), self.between(), keep_dims=True)
        gate = pixel
        if self.random.random() < 0.5:
            gate = self.unary("logistic", self.conv(pixel, (-4.0, 4.0), (1, 1), c), (0.0, 1.0))
        if self.random.random() < 0.4:
            self.others.append(gate)
            return host
        return self.add("mul", [host, gate], self.shapes[host], self.between(), fused_activation_function="none")

    def padded(self, x: int) -> int:
        """A PAD, of equal or unequal sides, and a filter or none behind it."""
        n, h, w, c = self.shapes[x]
        sides = self.pick((1, 1, 1, 1), (0, 1, 0, 1), (1, 0, 2, 1), (0, 0, 1, 1))
        amounts = np.array([[0, 0], sides[:2], sides[2:], [0, 0]], np.int32)
        shape = (n, h + sum(sides[:2]), w + sum(sides[2:]), c)
        y = self.add("pad", [x, self.builder.constant("pads", amounts)], shape, self.limits[x])
        size = self.pick(1, 3, 3) if min(shape[1:3]) >= 3 else 1
        return self.conv(y, self.between(), (size, size), 4, "none", "valid")

    def resized(self, x: int) -> int:
        """A map twice as high and wide."""
        n, h, w, c = self.shapes[x]
        options = {"align_corners": False, "half_pixel_centers": self.pick(True, False)}
        name = self.pick("resize_nearest_neighbor", "resize_nearest_neighbor", "resize_bilinear")
        inputs = [x, self.indices(2 * h, 2 * w)]
        return self.add(name, inputs, (n, 2 * h, 2 * w, c), self.limits[x], **options)

    def recoded(self, x: int) -> int:
        """A QUANTIZE."""
        return self.unary("quantize", x, self.between())

    def end(self, x: int) -> list[int]:
        """Return the outputs: the map, or what a fully connected layer, a mean or a softmax makes of it."""
        kind = self.random.random()
        if kind < 0.2:
            return [x]
        if kind < 0.3:
            return [self.add("softmax", [x], self.shapes[x], (0.0, 1.0), beta=1.0)]
        if kind < 0.8:
            x = self.mean(x, self.between())
        else:
            flat = (1, int(np.prod(self.shapes[x])))
            x = self.add("reshape", [x, self.indices(*flat)], flat, self.limits[x])
        y = self.dense(x, self.between(), self.pick(3, 5), self.pick("none", "relu"))
        if self.random.random() < 0.3:
            y = self.unary(self.pick("logistic", "tanh", "relu"), y, (0.0, 1.0))
        return [self.add("softmax", [y], self.shapes[y], (0.0, 1.0), beta=1.0)] if self.random.random() < 0.4 else [y]

    def pieces(self) -> tuple[Callable[[int], int], ...]:
        """What is drawn."""
        return (
            *[self.filtered] * 2,
            *(self.curved, self.hard, self.pooled, self.pooled, self.summed, self.shifted, self.shifted, self.joined),
            *(self.parallel, self.sliced, self.moved, self.squeezed, self.padded, self.resized, self.recoded),
        )

    def draw(self) -> Graph:
        """Return a graph of one to four pieces."""
        pieces = self.pieces()
        x = self.x
        if self.random.random() < 0.15:
            second = self.maybe(self.input(self.between(), self.shapes[x]))
            x = self.binary(self.pick("add", "mul"), self.plain(x, self.shapes[x][3]), second, self.between())
        for _ in range(int(self.random.integers(1, 4))):
            piece = pieces[int(self.random.integers(len(pieces)))]
            if int(np.prod(self.shapes[x])) <= LARGEST_MAP:
                x = piece(x)
        graph = self.graph(*dict.fromkeys([*self.end(x), *self.others]))
        if self.random.random() < 0.4:
            graph.tensors = [replace(t, range=None) for t in graph.tensors]
        return graph


class Consistent(Drawn):
    """Draws ranges of activations as a converter finds them: what goes in bounds what comes out; and more moves."""

    def add(self, operator: str, inputs: list[int], shape: Shape, limits: Limits, **options: Any) -> int:
        """Add any operator, its range cut by its activation or its input."""
        top = self.limits.get(inputs[0], limits)[1]
        positive = max(top, 0.1)
        own: dict[str, Limits | None] = {
            "relu": (0.0, positive),
            "relu6": (0.0, min(positive, 6.0)),
            "tanh": (-1.0, 1.0),
            "logistic": (0.0, 1.0),
            "hard_swish": (-0.375, positive),
            "leaky_relu": (-0.25, positive),
            "max_pool_2d": self.limits.get(inputs[0]),
        }
        fused = options.get("fused_activation_function", "none")
        if operator in own:
            limits = own[operator] or limits
        elif fused != "none":
            limits = (0.0, min(max(limits[1], 0.5), 6.0 if fused == "relu6" else np.inf))
        return super().add(operator, inputs, shape, limits, **options)

    def sequences(self, x: int) -> int:
        """A map as a sequence: a mean over its positions, weighed, or the sequence again."""
        host = self.maybe(x)
        n, h, w, c = self.shapes[host]
        rows = self.add("reshape", [host, self.indices(n, h * w, c)], (n, h * w, c), self.limits[host])
        axis = self.pick(1, 2)
        shape = (n, c) if axis == 1 else (n, h * w)
        y = self.add(
            self.pick("mean", "reduce_max"), [rows, self.indices(axis)], shape, self.between(), keep_dims=False
        )
        self.others.append(self.dense(y, self.between()))
        return host

    def turned(self, x: int) -> int:
        """A transpose of rows and columns, and perhaps back."""
        host = self.maybe(x)
        n, h, w, c = self.shapes[host]
        limits = self.limits[host]
        y = self.add("transpose", [host, self.indices(0, 2, 1, 3)], (n, w, h, c), limits)
        if self.random.random() < 0.5:
            return self.plain(y)
        return self.add("transpose", [y, self.indices(0, 2, 1, 3)], (n, h, w, c), limits)

    def several(self, x: int) -> int:
        """A tensor that a filter, a reduction, a pool and a sum read."""
        a = self.plain(x, activation=self.pick("none", "relu"))
        b = self.plain(a)
        self.others.append(self.dense(self.mean(a, self.between()), self.between()))
        if self.random.random() < 0.5 and min(self.shapes[a][1:3]) > 1:
            self.others.append(self.plain(self.pool(a, self.limits[a], self.pick("max", "average"))))
        return self.binary("add", a, b, self.between(), self.pick("none", "relu"))

    def pieces(self) -> tuple[Callable[[int], int], ...]:
        """The others, and these."""
        return (*super().pieces(), self.sequences, self.turned, self.several, self.several, self.joined, self.pooled)


CONSISTENT = 1000
"""The first seed of those."""


@cache
def drawn_network(seed: int) -> Graph:
    """Return one network."""
    return (Drawn if seed < CONSISTENT else Consistent)(seed).draw()
