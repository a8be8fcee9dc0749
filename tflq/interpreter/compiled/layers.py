"""Layers as the structs of kernels.c: weights packed, pixels and taps as offsets, maps and tables as arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.graph import Array
from tflq.interpreter.compiled.buffers import Buffer, Offsets
from tflq.interpreter.compiled.compiler import CLayer, LayerKind, Library, fill
from tflq.interpreter.compiled.forms import ByExponentials, ByTable, Pool
from tflq.interpreter.compiled.pairs import AffinePair
from tflq.interpreter.compiled.reals import ByLine, ByThresholds, ToReals
from tflq.interpreter.layers.linear import Linear
from tflq.interpreter.layers.reals import RealMap, RealSum
from tflq.interpreter.numerics.requantize import StepMaps
from tflq.interpreter.numerics.step_map import StepMap
from tflq.interpreter.operands.sliding_windows import Window

Clamp = tuple[int, int] | None
"""Ends of a clamp behind a layer."""
NEIGHBOURS = (4, 5, 3)
"""Outputs of a row that a depthwise layer of 3 x 3 computes together."""
LARGEST = 3e38
"""Where real numbers are clamped that have no ends."""
NEVER = np.iinfo(np.int32).min
"""No accumulator."""
WIDEST = 8
"""Neighboring pixels that a depthwise layer may see as one."""
LONGEST_BLOCK = 24
"""Outputs of the longest block of a dense layer."""
MOST_TWICE = 1.4
"""Outputs of a dense layer that are computed in fours of equal distance, some of them twice: as a multiple of all."""


class Packer:
    """Builder of structs that keeps the arrays of their pointers alive.

    Attributes:
        library: Library with the vectors that the layout follows.
        owned: arrays referenced by the pointers.
        sample_bytes: Size of a sample's arena, in bytes.
        batch: number of samples with pixels that a dense or depthwise layer reads as one image.
    """

    def __init__(self, library: Library, sample_bytes: int, batch: int) -> None:
        self.library = library
        self.owned: list[Array] = []
        self.sample_bytes = sample_bytes
        self.batch = batch

    def moved(self, kind: LayerKind, slot: int, buffer: Buffer) -> CLayer:
        """Return a layer that reads an array into a buffer, or writes it out."""
        layer = CLayer(kind=kind, slot=slot, rows=buffer.height, length=buffer.width * buffer.channels)
        set_end(layer, "x" if kind in (LayerKind.WRITE, LayerKind.WRITE_REALS) else "y", buffer)
        return layer

    def of_reals(self, form: ByThresholds | ByLine, slot: int, y: Buffer) -> CLayer:
        """Return a layer that reads an array of floating-point values into a buffer of quantized values."""
        layer = self.moved(LayerKind.READ_REALS, slot, y)
        if isinstance(form, ByLine):
            line, layer.of_nan = form.line, form.of_nan
            layer.first_scale, layer.offset = line.scale, line.offset
            layer.zero, layer.is_away = line.zero, line.is_away
            return layer
        layer.first_scale, layer.offset, layer.of_nan = form.scale, form.offset, form.of_nan
        fill(layer, self.owned, thresholds=form.least)
        return layer

    def by_table(self, form: ByTable, inputs: list[Buffer], y: Buffer, clamp: Clamp = None) -> CLayer:
        """Return a layer of one or two operands, and a clamp after it."""
        layer = CLayer(
            kind=LayerKind.TABLE if len(inputs) == 1 else LayerKind.PAIR, rows=y.height, length=y.width * y.channels
        )
        for name, buffer in zip(("x", "second"), inputs, strict=False):
            set_end(layer, name, buffer)
        set_end(layer, "y", y)
        low, high = (0, 255) if clamp is None else (end - y.least for end in clamp)  # above the least value
        pair = form.pair
        if pair is None or not pair.is_bounded:
            fill(layer, self.owned, table=form.table.clip(low, high))
            return layer
        least = 0 if self.library.multiplies_bytes else y.least
        layer.map.minimum, layer.map.maximum = np.clip((pair.minimum, pair.maximum), low + least, high + least)
        if isinstance(pair, AffinePair):
            layer.first_scale, layer.second_scale, layer.offset = pair.first, pair.second, pair.offset
            layer.is_single = int(pair.is_single)
        else:
            layer.kind = LayerKind.ROUNDED_PAIR
            (layer.first_scale, layer.first_offset), (layer.second_scale, layer.second_offset) = pair.terms
            layer.scale, layer.offset = pair.total
        return layer

    def to_reals(self, form: ToReals, x: Buffer, y: Buffer) -> CLayer:
        """Return a function from quantized values to reals."""
        layer = CLayer(kind=LayerKind.TO_REALS, rows=y.height, length=y.width * y.channels)
        set_end(layer, "x", x)
        set_end(layer, "y", y)
        if form.line is None:
            fill(layer, self.owned, numbers=form.numbers)
        else:
            layer.scale, zero = form.line
            layer.zero = zero + (0 if self.library.multiplies_bytes else x.least)
        return layer

    def real_sum(self, form: RealSum, inputs: list[Buffer], y: Buffer) -> CLayer:
        """Return a sum of floating-point values, the first operand to C, and quantized values."""
        layer = CLayer(kind=LayerKind.REAL_SUM, rows=y.height, length=y.width * y.channels)
        real, other = inputs if form.operands[0] is None else inputs[::-1]
        for name, buffer in (("x", real), ("second", other), ("y", y)):
            set_end(layer, name, buffer)
        ((layer.second_scale, zero),) = (operand for operand in form.operands if operand is not None)
        layer.second_offset = zero - (other.least if self.library.multiplies_bytes else 0)
        layer.scale, layer.offset, layer.map.minimum, layer.map.maximum = form.scale, form.zero, form.least, form.most
        layer.zero = form.first - (y.least if self.library.multiplies_bytes else 0)
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

    def by_exponentials(self, form: ByExponentials, x: Buffer, y: Buffer) -> CLayer:
        """Return a softmax of each pixel."""
        layer = CLayer(kind=LayerKind.SOFTMAX, rows=y.height * y.width, length=y.channels)
        set_end(layer, "x", x)
        set_end(layer, "y", y)
        layer.x_row, layer.y_row = x.pixel, y.pixel
        fill(layer, self.owned, exponentials=form.exponentials, addends=form.addends)
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
        x_at, y_at = x.first + rows * depth * element_x, y.first + rows * outputs * element_y
        at = x_at.astype(np.int32), y_at.astype(np.int32)
        return self._dense(form, x, y, clamp, at, np.zeros(1, np.int64), depth)

    def convolution(self, form: Linear, window: Window, x: Buffer, y: Buffer, clamp: Clamp) -> CLayer:
        """Return a dense convolution."""
        (height, width), (down, along) = window.kernel, window.dilation
        if along > 1:  # taps of a row are not neighbors: each is a separate run
            runs = np.arange(height)[:, None] * down * x.row + np.arange(width) * along * x.pixel
            return self._dense(form, x, y, clamp, self._image(window, x, y), runs.reshape(-1), form.weights.shape[3])
        lanes = self.library.lanes
        wide = self._abreast(y, lanes) if y.channels < lanes else 1
        run = (width + (wide - 1) * window.stride[1]) * x.channels
        shared = np.zeros((wide, len(form.weights), height, run), np.int16)
        for n in range(wide):  # outputs next to each other share a wider patch, with zeros around their taps
            first = n * window.stride[1] * x.channels
            shared[n, :, :, first : first + width * x.channels] = form.weights.reshape(len(form.weights), height, -1)
        joined = replace(form, weights=shared.reshape(-1, height, 1, run))
        x_at, y_at = self._image(window, x, y)
        at = x_at[::wide], y_at[::wide]
        return self._dense(joined, x, y, clamp, at, np.arange(height) * down * x.row, run, wide)

    def depthwise(self, form: Linear, window: Window, x: Buffer, y: Buffer, clamp: Clamp) -> CLayer:
        """Return a depthwise convolution; neighboring outputs may count as one pixel of more channels."""
        width = self.library.lanes * self.library.group  # channels of a vector of inputs
        layer = CLayer(kind=LayerKind.DEPTHWISE, pieces=1)
        set_end(layer, "x", x)
        set_end(layer, "y", y)
        wide = self._abreast(y, width)
        if window.stride[1] > 1:  # vectors of inputs are pieces, each of an output
            is_whole = self.library.multiplies_bytes and y.channels % 8 == 0 and wide * y.channels == width
            wide = wide if is_whole else 1
            layer.pieces, layer.piece_apart = wide, window.stride[1] * x.pixel
        down = np.arange(window.kernel[0])[:, None] * window.dilation[0] * x.row
        steps = down + np.arange(window.kernel[1]) * window.dilation[1] * x.pixel
        taps = np.tile(form.weights.reshape(len(form.weights), -1).T, wide).reshape(*steps.shape, -1)
        x_at, y_at = (at[::wide] for at in self._image(window, x, y))
        if self.library.multiplies_bytes:
            layer.outputs = 1
            is_high = (window.kernel[0], window.stride[0], window.dilation[0]) == (3, 1, 1) and y.height > 1
            if is_high and layer.pieces == 1:
                layer.outputs = 2
                x_at, y_at = in_pairs(x_at.reshape(y.height, -1), y_at.reshape(y.height, -1))
            self._set_interleaved(layer, taps, steps, x)
        else:
            layer.groups = steps.size
            blocks = padded(taps, width).reshape(steps.size, -1, width).swapaxes(0, 1)
            fill(layer, self.owned, weights=blocks.astype(np.float32), steps=steps.astype(np.int32))
            if wide == 1 and (window.kernel, window.stride[1], window.dilation[1]) == ((3, 3), 1, 1):
                layer.neighbors = next((n for n in NEIGHBOURS if y.width % n == 0), 0)
        self._set_map(layer, form.maps, wide, clamp, width)
        self._set_pixels(layer, x_at, y_at)
        return layer

    def _set_interleaved(self, layer: CLayer, taps: Array, steps: Array, x: Buffer) -> None:
        """Set weights and steps of a depthwise layer of bytes: taps [height, width, C] in groups of four.

        The groups of outputs in pairs are the columns: three rows and a zero for the upper one, a zero and three rows
        for the lower. Other layouts have the taps in order; after the last one the factors are zeros.
        """
        lanes, width = self.library.lanes, self.library.lanes * self.library.group
        start = padded(taps.sum(axis=(0, 1), dtype=np.int64)[None] * x.least, width)
        if layer.outputs == 2:
            zero = np.zeros_like(taps[:1])
            each = np.stack([np.concatenate([taps, zero]), np.concatenate([zero, taps])]).transpose(2, 0, 1, 3)
            places = (steps[0] + np.arange(4)[:, None] * x.row).T
        else:
            each = padded(taps.reshape(steps.size, -1).T, 4).T.reshape(-1, 1, 4, taps.shape[2])
            places = np.pad(steps.reshape(-1), (0, -steps.size % 4), mode="edge")
        layer.groups = len(each)
        by_lane = self._arranged(padded(each, width).reshape(-1, start.shape[1]), width)
        by_lane = by_lane.reshape(layer.groups, layer.outputs, 4, -1, 4, lanes).transpose(3, 0, 1, 4, 5, 2)
        arrays = {"weights": by_lane.astype(np.int8), "start": self._arranged(start, width).astype(np.int32)}
        fill(layer, self.owned, steps=places.astype(np.int32).reshape(-1), **arrays)

    def _arranged(self, values: Array, width: int) -> Array:
        """Return channels [rows, C] in the order of sums: interleaved bytes are fours of each quarter."""
        if width == self.library.lanes:
            return values
        order = values.reshape(len(values), values.shape[1] // width, width // 16, 4, 4)
        found: Array = order.swapaxes(2, 3).reshape(values.shape)
        return found

    def _abreast(self, y: Buffer, width: int) -> int:
        """Return how many neighboring outputs fill whole vectors of `width` channels: 1 where none do."""
        return next((n for n in range(1, WIDEST + 1) if n * y.channels % width == 0 and y.width % n == 0), 1)

    def _dense(
        self,
        form: Linear,
        x: Buffer,
        y: Buffer,
        clamp: Clamp,
        at: tuple[Offsets, Offsets],
        runs: Array,
        length: int,
        wide: int = 1,
    ) -> CLayer:
        """Return a dense layer.

        Args:
            form: the layer.
            x: Input buffer.
            y: Output buffer.
            clamp: Clamp of the results, in addition to the map's own ends.
            at: Offsets of the first tap of each output, and of the output.
            runs: Offsets of runs of neighboring elements, relative to the first tap.
            length: elements of a run.
            wide: neighboring outputs that count as one of more channels.
        """
        lanes, group = self.library.lanes, self.library.group
        order, apart = in_fours(at[0])
        layer = CLayer(kind=LayerKind.DENSE, apart=apart)
        set_end(layer, "x", x)
        set_end(layer, "y", y)
        self._set_pixels(layer, at[0][order], at[1][order])
        outputs = len(form.weights)
        filled = padded(form.weights.reshape(outputs * runs.size, length), group)
        shared = apart == x.pixel and length == self.library.taps * x.channels and x.channels % group == 0
        taps = self.library.taps if shared and order.size >= LONGEST_BLOCK else 1
        steps = runs[:, None] + np.arange(filled.shape[1] // taps // group) * 4
        each = filled.reshape(outputs, runs.size, taps, -1, group).swapaxes(2, 3).reshape(outputs, -1, group)
        vectors = -(-outputs // lanes)
        most = self.library.blocks_in_fours if apart else self.library.blocks
        layer.blocks = -(-vectors // -(-vectors // most))
        layer.groups, layer.taps = steps.size, taps
        by_lane = padded(each.transpose(1, 2, 0), lanes).reshape(taps * steps.size, group, vectors, lanes)
        packed = by_lane.transpose(2, 0, 3, 1)  # [vector, step, lane, group]
        blocks = [packed[i : i + layer.blocks].transpose(1, 0, 2, 3) for i in range(0, vectors, layer.blocks)]
        weights = np.concatenate([block.reshape(-1) for block in blocks])
        total = form.weights.astype(np.int64).reshape(outputs, -1).sum(axis=1)
        start = padded(total[None] * (x.least if self.library.multiplies_bytes else 0), lanes)
        kind = np.int8 if self.library.multiplies_bytes else np.float32
        arrays = {"weights": weights.astype(kind), "start": start.astype(np.int32), "steps": steps.astype(np.int32)}
        fill(layer, self.owned, **arrays)
        self._set_map(layer, form.maps, wide, clamp, lanes)
        return layer

    def _image(self, window: Window, x: Buffer, y: Buffer) -> tuple[Offsets, Offsets]:
        """Return the offsets of the first tap of each output, and of the output."""
        x_at = x.places(y.height, y.width, window.stride, (-window.top, -window.left))
        return x_at, y.places(y.height, y.width)

    def _set_pixels(self, layer: CLayer, x_at: Offsets, y_at: Offsets) -> None:
        samples = np.arange(self.batch)[:, None] * self.sample_bytes
        layer.pixels = x_at.size
        at = {"x_at": samples + x_at, "y_at": samples + y_at}
        fill(layer, self.owned, **{name: places.astype(np.int32).reshape(-1) for name, places in at.items()})

    def _set_map(self, layer: CLayer, maps: StepMaps | RealMap, wide: int, clamp: Clamp, width: int) -> None:
        """Set the constants of a map, with channels repeated `wide` times, for vectors of inputs of `width`."""
        target = layer.map

        def arranged(values: Array, filling: int = 0) -> Array:
            return self._arranged(padded(np.tile(values, wide), width, filling), width)

        def ready(values: Array | None, dtype: type[np.generic]) -> Array | None:
            return None if values is None else arranged(values[None]).astype(dtype)

        if isinstance(maps, RealMap):
            values = {"wide_offset": -maps.folded, "wide_scale": maps.multiplier, "bias": maps.bias}
            fill(target, self.owned, **{name: ready(array, np.float64) for name, array in values.items()})
            target.minimum, target.maximum = np.clip((maps.minimum, maps.maximum), -LARGEST, LARGEST)
            target.channels = maps.bias.size * wide
            return
        found = maps.listed
        assert found is not None
        prefix, dtype = ("", np.float32) if found.scale.dtype == np.float32 else ("wide_", np.float64)
        names = ("offset", "scale", "low", "high")
        fill(target, self.owned, **{prefix + name: ready(getattr(found, name), dtype) for name in names})
        low, high = clamp or (found.minimum, found.maximum)
        ends = np.clip((found.minimum, found.maximum), low, high)
        target.minimum, target.maximum = map(float, ends)
        target.channels = found.scale.size * wide
        at, value = listed(found)
        value = np.clip(value, *ends)
        at, value = arranged(at, NEVER).astype(np.int32), arranged(value)
        is_real = not self.library.multiplies_bytes
        value = value.astype(np.float32).view(np.int32) if is_real else value.astype(np.int32)
        target.stride = at.shape[1]
        used = (at != NEVER).sum(axis=0).reshape(-1, self.library.lanes).max(axis=1)
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


def in_fours(x_at: Offsets) -> tuple[Offsets, int]:
    """Return outputs in groups of four with equal distances of their inputs, and this distance.

    The last four of a row overlap the four before. If too many outputs would be computed twice, or a row has less than
    four: all outputs in order, and 0.
    """
    every: Offsets = np.arange(x_at.size, dtype=np.int32)
    if x_at.size < 4:
        return every, 0
    values, counts = np.unique(np.diff(x_at), return_counts=True)
    apart = int(values[np.argmax(counts)])
    rows = np.split(every, np.flatnonzero(np.diff(x_at) != apart) + 1)
    if apart <= 0 or min(row.size for row in rows) < 4:
        return every, 0
    starts = [np.minimum(row[::4], row[-1] - 3) for row in rows]
    order: Offsets = (np.concatenate(starts)[:, None] + np.arange(4, dtype=np.int32)).reshape(-1)
    return (order, apart) if order.size <= MOST_TWICE * every.size else (every, 0)


def in_pairs(x_at: Offsets, y_at: Offsets) -> tuple[Offsets, Offsets]:
    """Return the inputs of outputs [rows, columns] in pairs below each other, and the pairs in order.

    The last pair of an odd number of rows overlaps the one before.
    """
    upper = np.minimum(np.arange(0, len(x_at), 2), len(x_at) - 2)
    return x_at[upper].reshape(-1), np.stack([y_at[upper], y_at[upper + 1]], axis=-1).reshape(-1)


def padded(values: Array, multiple: int, filling: int = 0) -> Array:
    """Return an array with its last axis filled up to a multiple."""
    missing = -values.shape[-1] % multiple
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)], constant_values=filling) if missing else values


def set_end(layer: CLayer, name: str, buffer: Buffer) -> None:
    """Set the fields of an operand or result: name is x, second or y."""
    setattr(layer, name, buffer.first)
    for field, value in (("least", buffer.least), ("row", buffer.row)):
        setattr(layer, f"{name}_{field}", int(value))
    if name != "second":
        setattr(layer, f"{name}_pixel", buffer.pixel)
