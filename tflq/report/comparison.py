"""The tables and the verdict of `compare`: the layer to look at, all tensors, the worst differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from tflq import units
from tflq.diagnosis.compare import ComparedTensor, Comparison
from tflq.diagnosis.compare.tally import LAST_BIN, TensorFigures
from tflq.quoting import Json
from tflq.report.svg import Chart, histogram
from tflq.report.table import Column, Table, Verdict, Word, identifier, number, word_of

_WORST = 4
"""Tensors with a histogram of their own."""
_BARS = "▁▂▃▄▅▆▇█"


def comparison_verdict(comparison: Comparison) -> Verdict:
    """Return the number of tensors that differ and the layer to look at first."""
    tolerance = f" by more than {comparison.tolerance:g} LSB" if comparison.tolerance else ""
    unit = f"of {len(comparison.tensors)} tensors of {comparison.first} differ"
    link = f"{tolerance}{', layers isolated,' * comparison.isolated} from"
    is_right = comparison.is_equal or comparison.is_explained
    word: Word = "rounding only" if comparison.is_rounding and not is_right else word_of(is_right)
    return Verdict(
        word, len(comparison.diverging), unit, comparison.second, comparison.samples, _advice(comparison), link
    )


def _advice(comparison: Comparison) -> str:
    if comparison.is_equal:
        return ""
    if comparison.is_rounding:
        return "nothing to fix"
    if comparison.ranking:
        worst = comparison.ranking[0]
        channel = "" if worst.channel is None else f", channel {worst.channel}"
        cause = "" if worst.cause is None else f": {worst.cause.words}"
        return f"look at {worst.place}{channel} first{cause}"
    first = comparison.diverging[0]
    channel = "" if first.channel is None else f", most in channel {first.channel}"
    return f"the first is '{first.name}'{channel}"


def comparison_notes(comparison: Comparison) -> Iterator[str]:
    """Yield known differences, and tensors that were not compared."""
    for known in comparison.known:
        yield f"known: {known.elements} elements, because {known.reason}"
    for side, names in (("A", comparison.matching.first_only), ("B", comparison.matching.second_only)):
        if names:
            yield f"only {side} has: {', '.join(names[:5])}" + (f" and {len(names) - 5} more" * (len(names) > 5))
    if comparison.unseen:
        yield f"not checked, the dump lacks it: input {', '.join(comparison.unseen)}"


def comparison_tables(comparison: Comparison, top: int) -> list[Table]:
    """Return the ranking and the figures of every tensor.

    Args:
        comparison: Figures of both sides.
        top: Layers of the ranking that a terminal lists.
    """
    order = comparison.ranking
    title, listed = "Layers, the one to look at first on top", {t.name for t in order[:top]}
    worst = {t.name for t in order[:1]}
    is_worst, is_listed = lambda t: t.name in worst, lambda t: t.name in listed
    ranking = Table("ranking", _RANKING, order, title, marked=is_worst, brief=is_listed)
    tensors = Table(
        "tensors",
        _TENSORS,
        comparison.tensors,
        "Tensors in order of execution",
        marked=is_worst,
        charts=lambda: _histograms(comparison),
    )
    return [ranking, tensors]


def _histograms(comparison: Comparison) -> list[Chart]:
    """Draw the distribution of the differences in the tensors that differ most in their own steps."""
    counted = [t for t in comparison.tensors if t.figures.differing and t.figures.lsb is not None]
    return [
        Chart(
            histogram(t.figures.histogram, -LAST_BIN, "difference in LSB; the ends include all beyond"),
            f"{t.name}: {t.figures.differing} of {t.figures.elements} differ, by {t.figures.largest:.4g} LSB at most, "
            f"{t.figures.rms_lsb:.3g} rms",
        )
        for t in sorted(counted, key=lambda t: -t.figures.rms_lsb)[:_WORST]
    ]


def _sparkline(tensor: ComparedTensor) -> str:
    """Draw counts; their fourth root, which keeps rare large differences visible."""
    figures = tensor.figures
    if not figures.differing or figures.lsb is None:
        return ""
    most = max(figures.histogram) or 1
    return "".join(" " if not n else _BARS[round((n / most) ** 0.25 * (len(_BARS) - 1))] for n in figures.histogram)


def _largest(tensor: ComparedTensor) -> str:
    figures = tensor.figures
    is_counted = figures.lsb is not None or figures.same_encoding
    return units.number(figures.largest) if is_counted else f"{figures.largest:.3g} (real)"


def _places(figures: TensorFigures, name: str) -> Json:
    place = getattr(figures, name)
    return None if place is None else asdict(place)


def _share(name: str, rank: int) -> Column:
    return number(name, name, f"figures.{name}", lambda t: units.share(getattr(t.figures, name)), rank=rank)


_TENSORS = (
    identifier("name", "tensor"),
    Column("reference", get="match.second.name"),
    identifier("node", "layer", rank=8),
    number("differing", "differing", "figures.differing"),
    number("elements", "of", "figures.elements", rank=3),
    Column("lsb", get="figures.lsb"),
    number("largest_lsb", "largest", "figures.largest", _largest, "LSB"),
    number("rms_lsb", "rms", "figures.rms_lsb", ".3g", "LSB", rank=1),
    number("sqnr_db", "SQNR", "figures.sqnr_db", ".1f", "dB", bar=True),
    number("cosine", "cosine", "figures.cosine", ".6f", rank=2),
    _share("saturated", 4),
    _share("clipped", 5),
    Column("clipped_noise", get="figures.clipped_noise"),
    _share("unused", 6),
    Column("", f"-{LAST_BIN}..{LAST_BIN} LSB", get=lambda _: None, text=_sparkline, rank=7),
    Column("histogram", get="figures.histogram"),
    Column("same_encoding", get="figures.same_encoding"),
    Column(
        "channels",
        get=lambda t: [{"channel": c, "largest_lsb": most, "differing": n} for c, most, n in t.figures.channels[:16]],
    ),
    Column("first", get=lambda t: _places(t.figures, "first_place")),
    Column("worst", get=lambda t: _places(t.figures, "worst_place")),
)
_RANKING = (
    identifier("node", "layer"),
    Column("operator", "operator", rank=2),
    Column("tensor", get="name"),
    number("channel", "channel", rank=1),
    Column("added_noise", get="added"),
    Column("cause", get=lambda t: None if t.cause is None else t.cause.kind),
    Column("words", "likely cause", get=lambda t: None if t.cause is None else t.cause.words),
    Column("advice", "next step", get=lambda t: None if t.cause is None else t.cause.advice),
)
