"""`tflq demo`: everything once, on the model inside the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from tflq.analysis.emitted import check_emitted
from tflq.api.convert import compared_report
from tflq.cli import output
from tflq.cli.common import read_model, reporting

if TYPE_CHECKING:
    from pathlib import Path

    from tflq.analysis.emitted import EmittedDifference
    from tflq.analysis.executions import Execution
    from tflq.analysis.verify import Verdict
    from tflq.benchmarks.accuracy import Accuracy, LabelledSamples
    from tflq.converters.targets import Target
    from tflq.graph import Model


@dataclass(frozen=True)
class Row:
    """One line of the table of targets.

    Attributes:
        accuracy: over the test images.
        change: largest change of an output against the model as it is.
        emitted: the target's .tflite in TFLite; None for what is no target.
    """

    accuracy: Accuracy
    change: float
    emitted: EmittedDifference | str | None = None


@click.command("demo")
@reporting
def command(as_json: bool) -> int:
    """Show tflq at work on a small model that reads handwritten digits, on images that it has never seen.

    Exit status 1 if an element differs from TFLite.
    """
    from tflq.benchmarks.demo_data import demo_model_path, demo_samples

    path = demo_model_path()
    model = read_model(str(path))
    data = demo_samples(model.main)
    if not as_json:
        _introduce(path, model, data)
    verdict = _verify(path, model, data)
    if not as_json:
        _tell(verdict)
    rows = _rows(model, data)
    if as_json:
        output.json_report(_report(path, verdict, rows))
    else:
        _print_rows(rows)
        _print_next(path)
    return 0 if isinstance(verdict, str) or verdict.is_equal else 1


def _introduce(path: Path, model: Model, data: LabelledSamples) -> None:
    from tflq.analysis.inspection import inspect

    facts = inspect(model)[0]
    output.line("The model: a small convolutional network that reads handwritten digits.")
    output.line(
        f"  {path.name}: {output.size(path.stat().st_size)}, {len(facts.operators)} operators, {facts.macs:,} MACs"
    )
    output.line(f"  {data.samples.count} test images of 8 x 8 pixels, none of them used in training")
    output.line()


def _verify(path: Path, model: Model, data: LabelledSamples) -> Verdict | str:
    """Compare with TFLite, or say how to install it."""
    from tflq.analysis.oracle import Oracle
    from tflq.analysis.verify import verify
    from tflq.errors import MissingExtraError

    try:
        with Oracle() as oracle:
            return verify(model, path.read_bytes(), data.samples, oracle)
    except MissingExtraError as error:
        return str(error)


def _tell(verdict: Verdict | str) -> None:
    output.line("1. Is tflq's arithmetic TFLite's? Every tensor of every image, bit for bit:")
    if isinstance(verdict, str):
        output.line("  not compared, because TFLite is not installed here. To compare: pip install 'tflq[litert]'")
    else:
        total = verdict.total
        output.line(f"  {total.differing} of {total.elements} elements differ from TFLite")
        output.line(f"  ({len(verdict.compared)} tensors, {verdict.samples} images, {verdict.identity})")
    output.line()


def _rows(model: Model, data: LabelledSamples) -> list[Row]:
    from tflq.analysis.executions import as_is, in_float
    from tflq.analysis.output_change import largest_output_change
    from tflq.benchmarks.accuracy import measure
    from tflq.converters.targets import target_names

    reference = as_is(model)
    rows = [Row(measure(reference, data), 0.0)]
    floating = in_float(model)
    rows.append(Row(measure(floating, data), largest_output_change(floating, reference, data.samples)))
    rows.extend(_target_row(name, model, data, reference) for name in target_names())
    return rows


def _target_row(name: str, model: Model, data: LabelledSamples, reference: Execution) -> Row:
    from tflq.analysis.executions import for_target
    from tflq.analysis.output_change import largest_output_change
    from tflq.benchmarks.accuracy import measure
    from tflq.converters.settings import parse_settings
    from tflq.converters.targets import find_target

    target = find_target(name)
    execution = for_target(model.main, target, parse_settings(target.settings))
    change = largest_output_change(execution, reference, data.samples)
    return Row(measure(execution, data), change, _check(execution, target, model, data))


def _check(execution: Execution, target: Target, model: Model, data: LabelledSamples) -> EmittedDifference | str | None:
    """Compare the emitted .tflite; in words why it could not be done, such as an extra that is not installed."""
    from tflq.errors import MissingExtraError

    try:
        artefacts = target.emit(execution.graph, model)
    except MissingExtraError as error:
        return str(error)
    return check_emitted(execution, artefacts, data.samples)


def _print_rows(rows: list[Row]) -> None:
    output.line("2. The same model for each target: how many digits does it still read right?")
    output.table(
        ("as", "right", "of", "accuracy", "largest change", "its .tflite in TFLite"),
        [
            (
                row.accuracy.name,
                str(row.accuracy.right),
                str(row.accuracy.total),
                f"{row.accuracy.percent:.1f} %",
                f"{row.change:.4f}",
                _emitted(row.emitted),
            )
            for row in rows
        ],
        right=("right", "of", "accuracy", "largest change"),
    )
    output.line("  largest change: of any probability, against the model as it is.")
    output.line("  LSB: one step of the output's scale, between the target's own integers and TFLite.")
    output.line()


def _emitted(emitted: EmittedDifference | str | None) -> str:
    if emitted is None:
        return ""
    return "not compared" if isinstance(emitted, str) else f"at most {emitted.output.largest_lsb:.1f} LSB"


def _print_next(path: Path) -> None:
    output.line("3. What to try next, here or with a .tflite of your own:")
    for arguments in (
        f"inspect {path}",
        f"verify {path} --samples 1000",
        f"convert {path} --target gap9-ne16 --set weight_bits=4 -o digits_gap9",
        "targets",
        "models fetch",
    ):
        output.line(f"  tflq {arguments}")


def _report(path: Path, verdict: Verdict | str, rows: list[Row]) -> dict[str, output.Json]:
    compared: output.Json = verdict if isinstance(verdict, str) else None
    if not isinstance(verdict, str):
        compared = {
            "oracle": str(verdict.identity),
            "samples": verdict.samples,
            "elements": verdict.total.elements,
            "differing": verdict.total.differing,
        }
    return {
        "model": str(path),
        "tflite": compared,
        "rows": [
            {
                "name": row.accuracy.name,
                "right": row.accuracy.right,
                "samples": row.accuracy.total,
                "accuracy_percent": row.accuracy.percent,
                "largest_change": row.change,
                "emitted_tflite": compared_report(row.emitted),
            }
            for row in rows
        ],
    }
