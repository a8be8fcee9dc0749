"""What `tflq compare` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflq.cli import output

if TYPE_CHECKING:
    from tflq.analysis.compare import ComparedTensor, Comparison
    from tflq.analysis.compare.tally import Place, TensorFigures

_BARS = "▁▂▃▄▅▆▇█"


def print_comparison(found: Comparison, top: int) -> None:
    """Print the verdict in words, the ranked layers, and the table of tensors."""
    output.line(verdict(found))
    for name, others in (("only A has", found.matching.first_only), ("only B has", found.matching.second_only)):
        if others:
            some = ", ".join(output.short(o) for o in others[:5])
            output.line(f"{name}: {some}{f' and {len(others) - 5} more' if len(others) > 5 else ''}")
    ranked = found.ranking[:top]
    if ranked:
        output.line()
        output.line("layers, the one to look at first in front:")
        for number, tensor in enumerate(ranked, 1):
            channel = "" if tensor.channel is None else f", channel {tensor.channel}"
            output.line(f"{number:>3}. {tensor.node} ({tensor.operator}){channel}: {_cause(tensor)}")
    output.line()
    columns = (
        "tensor",
        "differing",
        "of",
        "largest LSB",
        "rms LSB",
        "SQNR dB",
        "cosine",
        "saturated",
        "clipped",
        "unused",
    )
    output.table((*columns, "-8..8 LSB"), [_row(t) for t in found.tensors], right=columns[1:])


def verdict(found: Comparison) -> str:
    """Say in one sentence what came out: the layer and channel to look at first, and the likely cause."""
    head = f"{found.first} against {found.second}, {found.samples} samples{', layers isolated' * found.isolated}: "
    if found.is_equal:
        return f"{head}{len(found.tensors)} tensors, none differs{_within(found)}"
    first = found.diverging[0]
    count = f"{len(found.diverging)} of {len(found.tensors)} tensors differ{_within(found)}"
    text = f"{head}{count}, the first is '{output.short(first.name)}'"
    ranked = found.ranking
    if not ranked:
        return f"{text}{'' if first.channel is None else f', most in channel {first.channel}'}"
    worst = ranked[0]
    channel = "" if worst.channel is None else f", channel {worst.channel}"
    cause = "" if worst.cause is None else f": {worst.cause.words}"
    return f"{text}; look at {worst.node}{channel} first{cause}"


def comparison_report(found: Comparison) -> dict[str, output.Json]:
    """Return the report of --json."""
    return {
        "first": found.first,
        "second": found.second,
        "samples": found.samples,
        "isolated": found.isolated,
        "tolerance": found.tolerance,
        "equal": found.is_equal,
        "verdict": verdict(found),
        "first_diverging": found.diverging[0].name if found.diverging else None,
        "ranking": [_ranked(t) for t in found.ranking],
        "tensors": [_tensor(t) for t in found.tensors],
        "first_only": found.matching.first_only,
        "second_only": found.matching.second_only,
    }


def _within(found: Comparison) -> str:
    return f" by more than {found.tolerance:g} LSB" if found.tolerance else ""


def _cause(tensor: ComparedTensor) -> str:
    cause = tensor.cause
    return "" if cause is None else f"{cause.words}. Try: {cause.advice}."


def _row(tensor: ComparedTensor) -> tuple[str, ...]:
    f = tensor.figures
    return (
        output.short(tensor.name),
        str(f.differing),
        str(f.elements),
        output.number(f.largest) if f.lsb is not None or f.same_encoding else f"{f.largest:.3g} (real)",
        f"{f.rms_lsb:.3g}",
        f"{f.sqnr_db:.1f}",
        f"{f.cosine:.6f}",
        _share(f.saturated),
        _share(f.clipped),
        _share(f.unused),
        _sparkline(f.histogram) if f.differing and f.lsb is not None else "",
    )


def _share(share: float) -> str:
    return "" if share == 0 else f"{share:.2%}"


def _sparkline(histogram: tuple[int, ...]) -> str:
    """Draw counts; their fourth root, so that rare large differences are seen beside common small ones."""
    most = max(histogram) or 1
    return "".join(" " if not n else _BARS[round((n / most) ** 0.25 * (len(_BARS) - 1))] for n in histogram)


def _ranked(tensor: ComparedTensor) -> dict[str, output.Json]:
    cause = tensor.cause
    return {
        "node": tensor.node,
        "operator": tensor.operator,
        "tensor": tensor.name,
        "channel": tensor.channel,
        "added_noise": tensor.added,
        "cause": None if cause is None else cause.kind,
        "words": None if cause is None else cause.words,
        "advice": None if cause is None else cause.advice,
    }


def _tensor(tensor: ComparedTensor) -> dict[str, output.Json]:
    return {
        "name": tensor.name,
        "reference": tensor.match.second.name,
        "node": tensor.node,
        **_figures(tensor.figures),
    }


def _figures(f: TensorFigures) -> dict[str, output.Json]:
    return {
        "elements": f.elements,
        "differing": f.differing,
        "lsb": f.lsb,
        "largest_lsb": f.largest,
        "rms_lsb": f.rms_lsb,
        "histogram": f.histogram,
        "cosine": f.cosine,
        "sqnr_db": f.sqnr_db,
        "saturated": f.saturated,
        "clipped": f.clipped,
        "clipped_noise": f.clipped_noise,
        "unused": f.unused,
        "same_encoding": f.same_encoding,
        "channels": [{"channel": c, "largest_lsb": largest, "differing": n} for c, largest, n in f.channels[:16]],
        "first": _place(f.first_place),
        "worst": _place(f.worst_place),
    }


def _place(place: Place | None) -> output.Json:
    if place is None:
        return None
    return {"sample": place.sample, "index": place.index, "first": place.first, "second": place.second}
