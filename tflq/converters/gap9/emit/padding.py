"""ConvPad, PoolPad and PADTYPE: how AutoTiler is told of padding (docs/targets/gap9.md#hand-over-to-greenwaves-flow).

AutoTiler pads by itself: its call says whether, and where the larger part goes. Compared with NNTool's models of 190
filters with pools, padded on any sides (gap9's recorded networks, and PAD in front of kernels 1x1 to 5x5).
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.interpreter.operands.sliding_windows import Window

_DEFAULT = 2
_PREFERRED = (_DEFAULT, 1, 3, 0)


def is_padded(window: Window, height: int, width: int) -> bool:
    """Return ConvPad or PoolPad: the window is padded, and its outputs are as many as those of TFLite's SAME.

    (n + before + after - reach) // stride + 1 >= ceil(n / stride) for rows and columns; less padding reaches AutoTiler
    as none.

    Args:
        window: of the convolution or pool.
        height: of the map that it reads.
        width: of it.
    """
    top, bottom, left, right = window.padding
    sizes = ((height, top, bottom), (width, left, right))
    axes = zip(sizes, window.kernel, window.dilation, window.stride, strict=True)
    outputs = [((n, stride), (n + before + after - (taps - 1) * step - 1) // stride + 1)
               for (n, before, after), taps, step, stride in axes]  # fmt: skip
    return any(window.padding) and all(count >= -(-n // stride) for (n, stride), count in outputs)


def pad_type(windows: Sequence[Window]) -> int | None:
    """Return PADTYPE, which all axes of the filter and its pool share; None where none fits, which NNTool fails on.

    0: all before, 1: all behind, 2 (AutoTiler's default): the larger part before, 3: behind; the first of 2, 1, 3, 0
    that fits each axis.
    """
    axes = [pair for w in windows for pair in ((w.top, w.bottom), (w.left, w.right))]
    fitting = [kind for kind in _PREFERRED if all(_fits(kind, *axis) for axis in axes)]
    return fitting[0] if fitting else None


def pad_control(windows: Sequence[Window]) -> dict[str, int]:
    """Return the control of a call: PADTYPE, where it is not AutoTiler's default."""
    kind = pad_type(windows)
    return {} if kind is None or kind == _DEFAULT else {"PADTYPE": kind}


def _fits(kind: int, before: int, after: int) -> bool:
    return (after == 0, before == 0, before - after in (0, 1), after - before in (0, 1))[kind]
