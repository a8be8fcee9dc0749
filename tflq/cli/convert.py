"""`tflq convert`: a model's files for a target, or for every target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from tflq.api.convert import DEFAULT_SAMPLES, ConvertAllResult, ConvertOptions, ConvertResult, convert, convert_all
from tflq.api.options import CalibrationOptions, SampleOptions, TargetOptions
from tflq.api.target import ALL, complete
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import (
    MODEL_ARGUMENT,
    calibration_options,
    folder_output,
    output_option,
    sample_options,
    target_options,
    with_page,
)
from tflq.quoting import shown
from tflq.report.conversion import closeness, engine_table, gained, sentence

if TYPE_CHECKING:
    from tflq.benchmarks.all_targets import TargetRow
    from tflq.graph import Node
    from tflq.graph.rewriting import Change


@click.command("convert", cls=SectionedCommand)
@MODEL_ARGUMENT
@target_options("`tflq targets` lists them; `all` is every one.", required=True)
@calibration_options
@folder_output
@output_option(
    "--write-template",
    "template_path",
    metavar="FILE",
    help="Write the settings, ranges and similarity of each layer, to edit and give back with --template.",
)
@output_option(
    "--write-settings",
    "settings_path",
    metavar="FILE",
    help="Write the settings as the vendor's tool reads them: opt.cfg of Compass, for the float IR that is written.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto"]),
    help="Choose NE16 or the cluster for each layer by the cycles of `tflq estimate`, and say what that gains.",
)
@click.option(
    "--recover",
    is_flag=True,
    help="First recover the weights (docs/recover.md) with the samples of --data, --input or else --calibrate.",
)
@click.option("--trace-passes", is_flag=True, help="Print the lines of the graph that each pass of the target changes.")
@click.option(
    "--pass",
    "passes",
    metavar="NAME",
    multiple=True,
    help="Pass that --trace-passes prints (default: each one that changes something); may be repeated.",
)
@sample_options(DEFAULT_SAMPLES)
@with_page
def command(
    model: str,
    target: TargetOptions,
    folder: Path,
    samples: SampleOptions,
    calibration: CalibrationOptions,
    template_path: Path | None,
    settings_path: Path | None,
    engine: Literal["auto"] | None,
    recover: bool,
    trace_passes: bool,
    passes: tuple[str, ...],
    report: Path | None,
    as_json: bool,
) -> int:
    """Quantize MODEL for a target and write its files into a folder: all of them, or none after an error.

    Each layer's result is compared with floating point on the samples: those of --input, else the first of
    --calibrate, else random ones. The .tflite among the files is run by TFLite on them, too, and compared with the
    target's own arithmetic; where neither ai-edge-litert nor tensorflow is installed this is omitted.

    `--target all` writes a folder for each target, with its defaults, and compares them in one table, by accuracy where
    --data names labeled samples; the status is 1 if a target refuses the model.
    """
    found: ConvertResult | ConvertAllResult
    options = ConvertOptions(calibration, recover, engine, trace_passes, passes)
    if passes and not trace_passes:
        raise click.UsageError("--pass is for --trace-passes")
    if target.name == ALL:
        if trace_passes:
            raise click.UsageError("--trace-passes is for one target")
        if recover:
            raise click.UsageError("--recover is for one target; its weights are no better for others")
        _refuse_for_all(target, calibration, template_path or settings_path)
        found = convert_all(model, folder, samples, options, progress=output.progress)
    else:
        found = convert(model, target, folder, samples, options, progress=output.progress)
        if template_path is not None:
            found.write_template(template_path)
        if settings_path is not None:
            found.write_settings(settings_path)
    output.show(
        found,
        as_json,
        lambda: _print(found, trace_passes) if isinstance(found, ConvertResult) else _print_all(found),
        report,
    )
    return 1 if isinstance(found, ConvertAllResult) and not found.is_complete else 0


def _print_changes(changes: Sequence[Change]) -> None:
    """Print name and reason of each pass, and the lines before (-) and after (+)."""
    if not changes:
        output.line("no pass changed the graph")
    for change in changes:
        source = f" ({change.source})" if change.source else ""
        output.line(f"pass {change.name} of {change.owner}: {change.why}{source}")
        for sign, lines in (("-", change.before), ("+", change.after)):
            for line in lines:
                output.line(f"  {sign} {shown(line)}")


def _refuse_for_all(target: TargetOptions, calibration: CalibrationOptions, template_path: Path | None) -> None:
    wanted = complete(target, calibration)
    if wanted.settings or wanted.layers:
        raise click.UsageError("--set and --layer are settings of one target; --target all takes each one's defaults")
    if template_path is not None:
        raise click.UsageError("--write-template and --write-settings are for one target")


def _print(found: ConvertResult, has_trace: bool) -> None:
    """Print the table of layers, the files, and how close they are to TFLite and to floating point."""
    if has_trace:
        _print_changes(found.changes)
    nodes = found.graph.nodes
    output.line(f"{found.target.name}: {len(nodes)} operators")
    rows = [_layer(found, str(number), node) for number, node in enumerate(nodes)]
    columns = ("#", "operator", "layer", "engine", "weights", "output", "cosine", "requantized")
    numbers = ("#", "cosine", "requantized", "TFLite, LSB")
    least = ("reason", "TFLite, LSB", "requantized", "weights", "output", "engine", "operator")
    output.table((*columns, "TFLite, LSB", "reason"), rows, right=numbers, least=least)
    output.line()
    if found.engines is not None:
        table = engine_table([layer for layer in found.engines.layers if layer.saved.is_offered])
        if table.rows:
            output.table(table.columns, table.rows, right=table.numbers, title="engines by the estimate of cycles")
        output.line(gained(found.engines))
    for name, departure in found.departures.items():
        output.line(f"warning: {name}: {departure}")
    for path, size in found.files.items():
        output.line(f"{path}: {output.size(size)}")
    output.line(sentence(found.compared))
    output.line(closeness(found.measured))


def _layer(found: ConvertResult, number: str, node: Node) -> tuple[str, ...]:
    tensors = {t: found.graph.tensors[t] for t in node.outputs}
    outputs = ", ".join(f"{t.dtype.value}[{','.join(map(str, t.shape))}]" for t in tensors.values())
    facts, bits = found.facts(node), found.facts(node).weight_bits
    similarity = found.similarity(node)
    cosine = requantized = lsb = ""
    if similarity is not None:
        cosine = f"{similarity.cosine:.6f}"
        if not math.isnan(similarity.differing):
            requantized = f"{100 * similarity.differing:.2f}%, {output.number(similarity.largest)}"
    if found.compared is not None and not isinstance(found.compared, str):
        steps = [found.compared.tensors[t].largest_lsb for t in tensors if t in found.compared.tensors]
        lsb = output.number(max(steps)) if steps else ""
    weights = f"{bits} bits" if bits else ""
    name = output.short(node.name)
    return number, node.operator, name, facts.engine, weights, outputs, cosine, requantized, lsb, facts.reason


def _print_all(found: ConvertAllResult) -> None:
    score = "accuracy" if found.is_accuracy else "agrees"
    output.line(f"{found.model}: {len(found.targets)} targets, files in {found.folder}")
    columns = ("target", score, "files", "worst layer", "its SQNR", "constraints")
    output.table(columns, [_target(row) for row in found.targets], right=(score, "files", "its SQNR"))
    if not found.is_accuracy:
        output.line(f"agrees: share of {found.samples} samples whose highest output is that of the model as it is;")
        output.line("  --data TASK=DIR measures accuracy on labeled data instead.")


def _target(row: TargetRow) -> tuple[str, ...]:
    if row.refused:
        return (row.target, "refused", "", "", "", "; ".join(row.constraints))
    ratio = f"{row.worst_sqnr_db:.1f} dB" if row.worst_layer else ""
    layer = "not compared: other tensors" if row.worst_layer is None else row.worst_layer or "none differs"
    size = output.size(row.size_bytes)
    score = "none" if row.score_percent is None else f"{row.score_percent:.1f} %"
    return (row.target, score, size, layer, ratio, "; ".join(row.constraints))
