"""Layers that move values: Reshape, Permute, Slice, Tile."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.converters.nnie.caffe.layer import CaffeLayer, Image, Parameter, Site, Step
from tflq.converters.passes.patterns import order_first
from tflq.errors import UnsupportedError
from tflq.interpreter.kernels.move.slices import lower_strided_slice

TO_LAST: Step = ("Permute", {"permute_param": {"order": (0, 2, 3, 1)}}, ())
"""The one Permute that NNIE has; twice it is [0, 3, 1, 2], the way back."""


def reshape(site: Site) -> list[CaffeLayer]:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: Reshape; through the graph's order of elements where channels change."""
    return site.chain(*reshape_steps(site.computed_images()[0], site.output_image()))


def reshape_steps(before: Image, after: Image) -> list[Step]:
    """Return the layers that give an image another shape, in the graph's order of elements; one at least."""
    _, h, w, c = after
    if before[3] == c:
        return [shape_step(c, h, w)]
    front = [TO_LAST] if before[3] > 1 and before[1] * before[2] > 1 else []
    if h * w > 1 and c > 1:
        return [*front, shape_step(h, w, c), TO_LAST, TO_LAST]
    return [*front, shape_step(c, h, w)]


def shape_step(channels: int, height: int, width: int) -> Step:
    """Return a Reshape to [N, channels, height, width]."""
    return ("Reshape", {"reshape_param": {"shape": {"dim": (0, channels, height, width)}}}, ())


def tiles_step(axis: int, count: int) -> Step:
    """Return a Tile along an axis of [N, C, H, W]."""
    return ("Tile", {"tile_param": {"axis": axis, "tiles": count}}, ())


def cut(name: str, bottom: str, top: str, kept: Mapping[int, range], sizes: Mapping[int, int]) -> list[CaffeLayer]:
    """Return a Slice for each axis of [N, C, H, W] that is cut; the rest are tops that nothing reads."""
    layers = []
    for number, (axis, part) in enumerate(kept.items(), 1):
        last = number == len(kept)
        own = name if last else f"{name}_cut_{number}"
        out = top if last else own
        points = [p for p in (part.start, part.stop) if 0 < p < sizes[axis]]
        tops = [f"{own}_before"] * (part.start > 0) + [out] + [f"{own}_behind"] * (part.stop < sizes[axis])
        layers.append(CaffeLayer(own, "Slice", (bottom,), tuple(tops), _slice_fields(axis, points)))
        bottom = out
    return layers


def transpose(site: Site) -> list[CaffeLayer]:
    """TRANSPOSE that is Permute 0, 2, 3, 1, once or twice, on [N, C, H, W].

    Raises:
        UnsupportedError: another order.
    """
    order, rank = site.constant(1), len(site.shape)
    wanted = () if order is None else tuple(int(a) % rank for a in order.reshape(-1))
    if rank == 3 and wanted[:1] == (0,):  # [N, L, C] is [N, 1, L, C]
        wanted = (0, 1, *(a + 1 for a in wanted[1:]))
    found = order_first(wanted) if len(wanted) == 4 else ()
    orders: dict[tuple[int, ...], int] = {(0, 1, 2, 3): 0, (0, 2, 3, 1): 1, (0, 3, 1, 2): 2}
    times = orders.get(found)
    if times is None:
        raise UnsupportedError(f"transpose {wanted}, on N, C, H, W {found}; NNIE has Permute 0, 2, 3, 1 only")
    _, h, w, c = site.output_image()
    return site.chain(*([TO_LAST] * times or [shape_step(c, h, w)]))


def split(site: Site) -> list[CaffeLayer]:
    """SPLIT, SPLIT_V: Slice with a top for each output."""
    operand = site.constant(0 if site.node.operator == "split" else 2)
    rank = len(site.shape)
    axis = int(operand.item()) if operand is not None else 0
    sizes = [site.graph.tensors[t].shape[axis] for t in site.node.outputs]
    points = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    tops = tuple(site.top if i == 0 else f"{site.top}_{i}" for i in range(len(sizes)))
    fields = _slice_fields(site.axis(axis, rank), points)
    return [CaffeLayer(site.name, "Slice", site.bottoms, tops, fields)]


def part(site: Site) -> list[CaffeLayer]:
    """SLICE, STRIDED_SLICE without steps: a Slice for each axis that is cut; Caffe returns the other tops, too.

    Raises:
        UnsupportedError: steps, new axes, or an axis that goes where others stay.
    """
    ranges = _ranges(site)
    rank = len(site.shape)
    kept = {site.axis(a, rank): r for a, r in enumerate(ranges) if len(r) != site.shape[a]}
    sizes = {site.axis(a, rank): site.shape[a] for a in range(1, rank)}
    _, h, w, c = site.output_image()
    return cut(site.name, site.bottoms[0], site.top, kept, sizes) or site.chain(shape_step(c, h, w))


def _ranges(site: Site) -> list[range]:
    if site.node.operator == "slice":
        begin, size = (site.constant(p) for p in (1, 2))
        if begin is None or size is None:
            raise UnsupportedError("begin or size is missing")
        pairs = zip(begin.reshape(-1).tolist(), size.reshape(-1).tolist(), site.shape, strict=True)
        return [range(b, b + s if s >= 0 else length) for b, s, length in pairs]
    index = next(i for i, node in enumerate(site.graph.nodes) if node.outputs == site.node.outputs)
    picks = lower_strided_slice(site.node, site.graph.operands(index)).picks
    if any(pick is None for pick in picks):
        raise UnsupportedError("a new axis; slice and reshape apart")
    ranges = []
    for axis, pick in enumerate(picks):
        length = site.shape[axis]
        found = range(pick, pick + 1) if isinstance(pick, int) else range(length)[slice(*pick or ())]
        if found.step != 1 and len(found) > 1:
            raise UnsupportedError(f"a step of {found.step}; Caffe's Slice takes neighbors")
        if isinstance(pick, int) and site.axis(axis, len(site.shape)) == 1 and len(site.shape) > 2:
            raise UnsupportedError("an axis of channels that goes; keep it, and reshape behind")
        ranges.append(range(found.start, found.start + len(found)))
    return ranges


def _slice_fields(axis: int, points: list[int]) -> Mapping[str, Parameter]:
    return {"slice_param": {"axis": axis, "slice_point": tuple(points)}}


def tile(site: Site) -> list[CaffeLayer]:
    """TILE: a Tile layer for each axis that repeats."""
    counts = site.constant(1)
    found = [] if counts is None else [int(c) for c in counts.reshape(-1)]
    steps: list[Step] = [tiles_step(site.axis(a, len(found)), count) for a, count in enumerate(found) if count != 1]
    _, h, w, c = site.output_image()
    return site.chain(*(steps or [shape_step(c, h, w)]))
