"""The cause of a wrong layer on a page: description, computation, and small maps of the differences."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.hypotheses.finding import Diagnosis
from tflq.report.svg import Chart, Mark, bars, cells
from tflq.report.table import Column, Table, identifier, number

_MOST_CELLS = 64
"""Rows and columns of a map; larger images are summed in blocks."""
_MOST_BARS = 512


def diagnosis_table(found: Diagnosis, explain: str) -> Table:
    """Return the hypotheses that explain a wrong layer.

    Args:
        found: Cause of the first wrong layer.
        explain: `tflq explain` for the first wrong element.
    """
    place = f"sample {found.sample} {list(found.index)}: {found.got:g}, expected {found.wanted:g}"
    notes = [
        f"{found.description}.",
        f"{found.node or found.tensor} ({found.operator}): {found.words}.",
        f"{found.differing} of {found.elements} elements differ from the layer's output for the dump's own inputs, "
        f"first at {place}.",
        f"To try: {found.advice}. Next:",
        explain,
    ]
    if not found.inputs_seen:
        notes.append("The dump lacks some inputs of the layer; the model's own values are used for these.")
    if found.without_effect:
        notes.append(f"No effect on the samples, hence not excluded: {', '.join(found.without_effect)}.")
    notes += [
        f"Also wrong in isolation: {other.node or other.tensor}: {other.description}; {other.words}."
        for other in found.others
    ]
    if found.failed:
        notes.append(f"Failed, a defect of tflq, please report: hypothesis {', '.join(found.failed)}.")
    charts = partial(maps, found.wrong, found.first_sample)
    return Table("", _COLUMNS, found.found, "The cause", notes, lambda f: f.is_exact, charts=charts)


_COLUMNS = (
    Column("", "if this is the fault", get="words"),
    number("", "still differ", "remaining"),
    number("", "of", "elements"),
    number("", "explained", lambda f: max(f.share, 0), lambda f: f"{max(f.share, 0):.1%}"),
    identifier("", "hypothesis", "hypothesis"),
)


def maps(wrong: NDArray[np.bool_], first_sample: int = 0) -> list[Chart]:
    """Draw the differing elements: in the image, by channel, by sample.

    Args:
        wrong: True for elements that differ, bool[S, *shape].
        first_sample: Number of the first sample.
    """
    charts = []
    core = wrong.reshape(len(wrong), *[n for n in wrong.shape[1:] if n != 1])
    if core.ndim == 4:
        image = core.sum(axis=(0, 3))
        charts.append(Chart(cells(_sum_blocks(image).tolist(), "columns", "rows"), _words("image", image, core)))
    if core.ndim >= 2 and core.shape[-1] > 1:
        channels = core.reshape(-1, core.shape[-1]).sum(axis=0)
        charts.append(_strip(channels, "channel", 0))
    if len(core) > 1:
        charts.append(_strip(core.reshape(len(core), -1).sum(axis=1), "sample", first_sample))
    return charts


def _sum_blocks(image: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum blocks, so that neither side has more than _MOST_CELLS."""
    block = max(1, -(-max(image.shape) // _MOST_CELLS))
    filled = np.pad(image, [(0, -n % block) for n in image.shape])
    return np.asarray(filled.reshape(filled.shape[0] // block, block, -1, block).sum(axis=(1, 3)), np.int64)


def _words(what: str, image: NDArray[np.int64], core: NDArray[np.bool_]) -> str:
    rows, columns = (np.flatnonzero(image.any(axis=a)) for a in (1, 0))
    return (
        f"Where in the {what} of {image.shape[0]} x {image.shape[1]}: rows {rows.min()}..{rows.max()}, columns "
        f"{columns.min()}..{columns.max()}; {int(core.sum())} elements of all samples and channels"
    )


def _strip(counts: NDArray[np.int64], what: str, first: int) -> Chart:
    block = -(-len(counts) // _MOST_BARS)
    summed = np.pad(counts, (0, -len(counts) % block)).reshape(-1, block).sum(axis=1)
    marks = [Mark(float(n), f"{what} {first + i * block}: {n}", bool(n)) for i, n in enumerate(summed.tolist())]
    differing = int(np.count_nonzero(counts))
    ticks = {0: str(first), len(marks) - 1: str(first + (len(marks) - 1) * block)}
    return Chart(bars(marks, "elements", f"{what}s", ticks), f"Which {what}s: {differing} of {len(counts)} differ")
