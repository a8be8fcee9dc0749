"""Layers as the structs of kernels.c: weights packed, pixels and taps as offsets, maps and tables as arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.graph import Array
from tflq.interpreter.accumulate import Window
from tflq.interpreter.compiled.buffers import Buffer, Offsets
from tflq.interpreter.compiled.compiler import Library
from tflq.interpreter.compiled.forms import ByTable, Pool
from tflq.interpreter.compiled.structures import CLayer, CMap, LayerKind, fill
from tflq.interpreter.layers.linear import Linear
from tflq.interpreter.numerics.step_map import StepMap

MOST_VECTORS = 4
"""Vectors of output channels whose sums are held at a time."""
Clamp = tuple[int, int] | None
"""Ends of a clamp behind a layer."""
NEIGHBOURS = (4, 5, 3)
"""Outputs of a row that a depthwise layer of 3 x 3 computes together."""
NEVER = np.iinfo(np.int32).min
"""No accumulator."""
WIDEST = 8
"""Neighbouring pixels that a depthwise layer may see as one."""


class Packer:
    """Makes structs; keeps what they point to.

    Attributes:
        library: whose vectors the layout follows.
        owned: arrays behind the pointers.
        sample_bytes: of a sample's arena.
        batch: samples whose pixels a dense or depthwise layer sees as one image.
    """

    def __init__(self, library: Library, sample_bytes: int, batch: int) -> None:
        self.library = library
        self.owned: list[Array] = []
        self.sample_bytes = sample_bytes
        self.batch = batch

    def moved(self, kind: LayerKind, slot: int, buffer: Buffer) -> CLayer:
        """Return a layer that reads an array into a buffer, or writes it out."""
        layer = CLayer(kind=kind, slot=slot, rows=buffer.height, length=buffer.width * buffer.channels)
        set_end(layer, "y" if kind == LayerKind.READ else "x", buffer)
        return layer

    def by_table(self, form: ByTable, inputs: list[Buffer], y: Buffer) -> CLayer:
        """Return a layer of one or two operands."""
        layer = CLayer(
            kind=LayerKind.TABLE if len(inputs) == 1 else LayerKind.PAIR, rows=y.height, length=y.width * y.channels
        )
        for name, buffer in zip(("x", "second"), inputs, strict=False):
            set_end(layer, name, buffer)
        set_end(layer, "y", y)
        if form.pair is None:
            fill(layer, self.owned, table=form.table)
        else:
            pair = form.pair
            layer.first_scale, layer.second_scale, layer.offset = pair.first, pair.second, pair.offset
            layer.map.minimum, layer.map.maximum = pair.minimum, pair.maximum
        return layer

    def copied(self, x: Buffer, y: Buffer) -> CLayer:
        """Return a layer that moves elements in order: rows of the one with a border; the other has none."""
        rows = y if x.is_flat else x
        layer = CLayer(kind=LayerKind.TABLE, rows=rows.height, length=rows.width * rows.channels)
        set_end(layer, "x", x)
        set_end(layer, "y", y)
        size = rows.width * rows.channels
        if x.is_flat:
            layer.x_row = size * (4 if x.is_real else 1)
        if y.is_flat:
            layer.y_row = size * (4 if y.is_real else 1)
        fill(layer, self.owned, table=np.arange(256, dtype=np.uint8))
        return layer

    def pool(self, form: Pool, x: Buffer, y: Buffer) -> CLayer:
        """Return an average or a maximum."""
        window = form.window
        layer = CLayer(kind=LayerKind.LARGEST if form.is_largest else LayerKind.AVERAGE)
        set_end(layer, "x", x)
        set_end(layer, "y", y)
        layer.height, layer.width, layer.out_width, layer.pixels = x.height, x.width, y.width, y.height * y.width
        (layer.kernel_y, layer.kernel_x), (layer.stride_y, layer.stride_x) = window.kernel, window.stride
        layer.top, layer.left, layer.map.channels = window.top, window.left, x.channels
        fill(layer, self.owned, table=form.table, table_at=form.table_at, y_at=y.places(y.height, y.width))
        return layer

    def product(self, form: Linear, x: Buffer, y: Buffer, clamp: Clamp) -> CLayer:
        """Return a fully connected layer; both buffers are flat."""
        outputs, *_, depth = form.weights.shape
        rows = np.arange(x.height * x.width * x.channels // depth)
        element_x, element_y = x.pixel // x.channels, y.pixel // y.channels
        layer = self._dense(form, x, y, clamp, np.zeros(1, np.int64), depth)
        x_at = (x.first + rows * depth * element_x).astype(np.int32)
        self._set_pixels(layer, x_at, (y.first + rows * outputs * element_y).astype(np.int32))
        return layer

    def convolution(self, form: Linear, window: Window, x: Buffer, y: Buffer, clamp: Clamp) -> CLayer:
        """Return a dense convolution."""
        (height, width), (down, along) = window.kernel, window.dilation
        if along > 1:  # taps of a row are not neighbours: each is a run of its own
            runs = np.arange(height)[:, None] * down * x.row + np.arange(width) * along * x.pixel
            layer = self._dense(form, x, y, clamp, runs.reshape(-1), form.weights.shape[3])
            self._set_pixels(layer, *self._image(window, x, y))
            return layer
        wide = self._abreast(y, self.library.lanes - 1)
        run = (width + (wide - 1) * window.stride[1]) * x.channels
        shared = np.zeros((wide, len(form.weights), height, run), np.int16)
        for n in range(wide):  # outputs next to each other share a wider patch, with zeros beside their own taps
            first = n * window.stride[1] * x.channels
            shared[n, :, :, first : first + width * x.channels] = form.weights.reshape(len(form.weights), height, -1)
        joined = replace(form, weights=shared.reshape(-1, height, 1, run))
        layer = self._dense(joined, x, y, clamp, np.arange(height) * down * x.row, run, wide)
        x_at, y_at = self._image(window, x, y)
        self._set_pixels(layer, x_at[::wide], y_at[::wide])
        return layer

    def depthwise(self, form: Linear, window: Window, x: Buffer, y: Buffer, clamp: Clamp) -> CLayer:
        """Return a depthwise convolution; neighbouring outputs may count as one pixel of more channels."""
        lanes = self.library.lanes
        wide = self._abreast(y) if window.stride[1] == 1 else 1
        layer = CLayer(kind=LayerKind.DEPTHWISE)
        set_end(layer, "x", x)
        set_end(layer, "y", y)
        down = np.arange(window.kernel[0])[:, None] * window.dilation[0] * x.row
        steps = (down + np.arange(window.kernel[1]) * window.dilation[1] * x.pixel).reshape(-1)
        taps = np.tile(form.weights.reshape(len(form.weights), -1).T, wide)
        weights = padded(taps, lanes).reshape(steps.size, -1, lanes).transpose(1, 0, 2)
        layer.groups = steps.size
        if x.is_real and wide == 1 and (window.kernel, window.stride[1], window.dilation[1]) == ((3, 3), 1, 1):
            layer.neighbours = next((n for n in NEIGHBOURS if y.width % n == 0), 0)
        fill(layer, self.owned, steps=steps.astype(np.int32), weights=weights.astype(np.float32))
        self._set_map(layer.map, form.maps.listed, wide, clamp)
        x_at, y_at = self._image(window, x, y)
        self._set_pixels(layer, x_at[::wide], y_at[::wide])
        return layer

    def _abreast(self, y: Buffer, most: int | None = None) -> int:
        """Return how many neighbouring outputs fill whole vectors: 1 where none do, or they have more channels."""
        if most is not None and y.channels > most:
            return 1
        counts = range(1, WIDEST + 1)
        return next((n for n in counts if n * y.channels % self.library.lanes == 0 and y.width % n == 0), 1)

    def _dense(
        self, form: Linear, x: Buffer, y: Buffer, clamp: Clamp, runs: Array, length: int, wide: int = 1
    ) -> CLayer:
        """Return a dense layer without its pixels.

        Args:
            form: the layer.
            x: what it reads.
            y: what it writes.
            clamp: what its results are clamped to, beside the map's own ends.
            runs: where runs of neighbouring elements begin, from the first tap on.
            length: elements of a run.
            wide: neighbouring outputs that count as one of more channels.
        """
        lanes, group = self.library.lanes, self.library.group
        layer = CLayer(kind=LayerKind.DENSE)
        set_end(layer, "x", x)
        set_end(layer, "y", y)
        outputs = len(form.weights)
        filled = padded(form.weights.reshape(outputs * runs.size, length), group)
        each = filled.reshape(outputs, -1, group)
        steps = runs[:, None] + np.arange(filled.shape[1] // group) * 4
        vectors = -(-outputs // lanes)
        layer.blocks = -(-vectors // -(-vectors // MOST_VECTORS))
        layer.groups = steps.size
        by_lane = padded(each.transpose(1, 2, 0), lanes).reshape(steps.size, group, vectors, lanes)
        packed = by_lane.transpose(2, 0, 3, 1)  # [vector, step, lane, group]
        blocks = [packed[i : i + layer.blocks].transpose(1, 0, 2, 3) for i in range(0, vectors, layer.blocks)]
        weights = np.concatenate([block.reshape(-1) for block in blocks])
        total = form.weights.astype(np.int64).reshape(outputs, -1).sum(axis=1)
        start = padded(total[None] * (x.least if self.library.multiplies_bytes else 0), lanes)
        kind = np.int8 if self.library.multiplies_bytes else np.float32
        arrays = {"weights": weights.astype(kind), "start": start.astype(np.int32), "steps": steps.astype(np.int32)}
        fill(layer, self.owned, **arrays)
        self._set_map(layer.map, form.maps.listed, wide, clamp)
        return layer

    def _image(self, window: Window, x: Buffer, y: Buffer) -> tuple[Offsets, Offsets]:
        """Return where the first tap of each output lies, and where the output does."""
        x_at = x.places(y.height, y.width, window.stride, (-window.top, -window.left))
        return x_at, y.places(y.height, y.width)

    def _set_pixels(self, layer: CLayer, x_at: Offsets, y_at: Offsets) -> None:
        samples = np.arange(self.batch)[:, None] * self.sample_bytes
        layer.pixels = x_at.size
        at = {"x_at": samples + x_at, "y_at": samples + y_at}
        fill(layer, self.owned, **{name: places.astype(np.int32).reshape(-1) for name, places in at.items()})

    def _set_map(self, target: CMap, found: StepMap | None, wide: int, clamp: Clamp) -> None:
        """Set the constants of a map, whose channels are repeated `wide` times."""
        assert found is not None
        lanes = self.library.lanes

        def ready(values: Array | None, dtype: type[np.generic]) -> Array | None:
            return None if values is None else padded(np.tile(values[None], wide), lanes).astype(dtype)

        prefix, dtype = ("", np.float32) if found.scale.dtype == np.float32 else ("wide_", np.float64)
        names = ("offset", "scale", "low", "high")
        fill(target, self.owned, **{prefix + name: ready(getattr(found, name), dtype) for name in names})
        low, high = clamp or (found.minimum, found.maximum)
        ends = np.clip((found.minimum, found.maximum), low, high)
        target.minimum, target.maximum = map(float, ends)
        target.channels = found.scale.size * wide
        at, value = listed(found)
        value = np.clip(value, *ends)
        at = padded(np.tile(at, wide), lanes, NEVER).astype(np.int32)
        value = padded(np.tile(value, wide), lanes).astype(np.int32)
        target.stride = at.shape[1]
        used = (at != NEVER).sum(axis=0).reshape(-1, lanes).max(axis=1)
        fill(target, self.owned, at=at, value=value, rows=used.astype(np.int32))


def listed(found: StepMap) -> tuple[Array, Array]:
    """Return accumulators that the map gets wrong and their quantized values: int64[rows, O] each, spread over rows."""
    channels = np.array([channel for channel, _, _ in found.exceptions], np.int64)
    rows = np.array([int((channels[:n] == channels[n]).sum()) for n in range(channels.size)], np.int64)
    shape = (int(rows.max()) + 1 if rows.size else 0, found.scale.size)
    at, value = np.full(shape, NEVER, np.int64), np.zeros(shape, np.int64)
    for row, (channel, accumulator, code) in zip(rows, found.exceptions, strict=True):
        at[row, channel], value[row, channel] = accumulator, code
    return at, value


def padded(values: Array, multiple: int, filling: int = 0) -> Array:
    """Return an array whose last axis is filled up to a multiple."""
    missing = -values.shape[-1] % multiple
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)], constant_values=filling) if missing else values


def set_end(layer: CLayer, name: str, buffer: Buffer) -> None:
    """Say where an operand or result lies: name is x, second or y."""
    setattr(layer, name, buffer.first)
    for field, value in (("real", buffer.is_real), ("least", buffer.least), ("row", buffer.row)):
        setattr(layer, f"{name}_{field}", int(value))
    if name != "second":
        setattr(layer, f"{name}_pixel", buffer.pixel)
