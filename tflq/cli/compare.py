"""`tflq compare`: two models, targets, arithmetics or tensor dumps over the same samples."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.compare import DEFAULT_SAMPLES, CompareOptions, CompareResult, compare
from tflq.api.options import SampleOptions, changed
from tflq.cli import completion, output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import (
    JOBS_OPTION,
    SCHEDULER_OPTION,
    SIDE_HELP,
    STRICT_OPTION,
    calibration_options,
    dump_options,
    report_option,
    reporting,
    sample_options,
    target_options,
)
from tflq.cli.outputs import OutputPath, writing
from tflq.diagnosis.compare import ComparedTensor

_BARS = "▁▂▃▄▅▆▇█"
_FIGURES = ("differing", "of", "largest LSB", "rms LSB", "SQNR dB", "cosine", "saturated", "clipped", "unused")
_LEAST = ("-8..8 LSB", "unused", "clipped", "saturated", "of", "cosine", "rms LSB")


@click.command("compare", cls=SectionedCommand, epilog=f"A and B: {SIDE_HELP}")
@click.argument("first", metavar="A", shell_complete=completion.file)
@click.argument("second", metavar="[B]", default="@float", shell_complete=completion.file)
@sample_options(DEFAULT_SAMPLES)
@click.option("--isolated", is_flag=True, help="Feed each layer of A with B's tensors: its own error alone.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="LSB",
    help="Differences up to it do not count as such (0: any difference counts).",
)
@click.option("--tensor", "tensors", multiple=True, metavar="NAME", help="Compare this tensor of A only. Repeat it.")
@dump_options
@STRICT_OPTION
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Layers to rank in the text.")
@JOBS_OPTION
@SCHEDULER_OPTION
@report_option
@click.option(
    "--model-explorer",
    "node_data_path",
    type=OutputPath(path_type=Path, dir_okay=False),
    metavar="FILE.json",
    help="Write the noise of each tensor as node data of Model Explorer, too.",
)
@target_options()
@calibration_options
@reporting
@writing
def command(
    first: str,
    second: str,
    samples: SampleOptions,
    strict: bool,
    top: int,
    report: Path | None,
    node_data_path: Path | None,
    as_json: bool,
    **options: object,
) -> int:
    """Compare A with the reference B, tensor by tensor, and rank the layers by what they add.

    Without B the reference is A's model in floating point. Exit status 1 if a tensor differs; not where A is a model as
    it is, B a dump of TFLite, and docs/operators.md lists all that differs as known.
    """
    found = compare(first, second, samples, changed(CompareOptions(), options), progress=output.progress)
    if node_data_path is not None:
        found.write_node_data(node_data_path)
    output.show(found, as_json, lambda: _print(found, top), report)
    return 0 if found.is_equal or (found.is_explained and not strict) else 1


def _print(result: CompareResult, top: int) -> None:
    """Print the verdict, what is known to differ, the ranked layers and the table of tensors."""
    output.line(result.verdict)
    found = result.comparison
    for known in found.known:
        output.line(f"known: {known.elements} elements, because {known.reason}")
    for name, others in (("only A has", found.matching.first_only), ("only B has", found.matching.second_only)):
        if others:
            output.line(f"{name}: {output.some(others)}")
    output.lines(result.notes)
    output.lines(layer.text for layer in result.recovered)
    if found.unseen:
        output.line(f"not seen, the dump lacks it: input {', '.join(map(output.short, found.unseen))}")
    wrong = result.diagnosis
    if wrong is not None:
        output.line(
            f"{wrong.differing} of {wrong.elements} elements, first at sample {wrong.sample} {list(wrong.index)}: "
            f"{wrong.got:g}, expected {wrong.wanted:g}; next: {result.explain_line}"
        )
    ranked = found.ranking[:top]
    if ranked:
        output.line()
        output.line("layers, the one to look at first in front:")
        for number, tensor in enumerate(ranked, 1):
            channel = "" if tensor.channel is None else f", channel {tensor.channel}"
            cause = "" if tensor.cause is None else f"{tensor.cause.words}. Try: {tensor.cause.advice}."
            output.line(f"{number:>3}. {tensor.place} ({tensor.operator}){channel}: {cause}")
    output.line()
    output.table(("tensor", *_FIGURES, "-8..8 LSB"), [_row(t) for t in found.tensors], right=_FIGURES, least=_LEAST)


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
        *("" if share == 0 else f"{share:.2%}" for share in (f.saturated, f.clipped, f.unused)),
        _sparkline(f.histogram) if f.differing and f.lsb is not None else "",
    )


def _sparkline(histogram: tuple[int, ...]) -> str:
    """Draw counts; their fourth root, so that rare large differences are seen beside common small ones."""
    most = max(histogram) or 1
    return "".join(" " if not n else _BARS[round((n / most) ** 0.25 * (len(_BARS) - 1))] for n in histogram)
