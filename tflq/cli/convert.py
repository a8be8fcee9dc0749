"""`tflq convert`: a model's files for a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.calibration_options import CalibrationChoice, calibrated, calibration
from tflq.cli.common import MODEL_ARGUMENT, choose_samples, read_model, reporting, sampling
from tflq.cli.convert_all import convert_all
from tflq.cli.convert_output import Converted, closeness, conversion_report, print_conversion, sentence
from tflq.cli.report_options import report_option, write_report
from tflq.cli.target_options import choose_target, target_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tflq.analysis.emitted import EmittedDifference
    from tflq.analysis.executions import Execution
    from tflq.analysis.inputs import Samples
    from tflq.analysis.similarity import Similarities
    from tflq.converters.settings import Settings
    from tflq.converters.targets import Target
    from tflq.graph import Model

DEFAULT_SAMPLES = 32


@click.command("convert")
@MODEL_ARGUMENT
@click.option(
    "-t",
    "--target",
    "target_name",
    required=True,
    metavar="TARGET",
    help="`tflq targets` lists them; `all` is every one.",
)
@target_settings
@calibration
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder to write into; it is made where it is missing.",
)
@click.option(
    "--write-template",
    "template_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the settings, ranges and similarity of each layer, to edit and give back with --template.",
)
@click.option(
    "--accuracy",
    metavar="TASK=DIR",
    help="With `--target all`: measure accuracy on a labelled data set of `tflq bench`.",
)
@sampling(DEFAULT_SAMPLES)
@report_option
@reporting
def command(
    model: str,
    target_name: str,
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    folder: Path,
    inputs: tuple[str, ...],
    real: bool,
    samples: int | None,
    seed: int,
    as_json: bool,
    calibration: CalibrationChoice,
    template_path: Path | None,
    accuracy: str | None,
    report: Path | None,
) -> int:
    """Quantise MODEL for a target and write its files into a folder: all of them, or none after an error.

    Each layer's result is compared with floating point on the samples: those of --input, else the first of
    --calibrate, else random ones. The .tflite among the files is run by TFLite on them, too, and compared with the
    target's own arithmetic; where neither ai-edge-litert nor tensorflow is installed this is left out.

    `--target all` writes a folder for each target, with its defaults, and compares them in one table; the status is 1
    if a target refuses the model.
    """
    from tflq.analysis.executions import for_target
    from tflq.files import output_folder

    if target_name == "all" and (assignments or layers):
        raise click.UsageError("--set and --layer are settings of one target; --target all takes each one's defaults")
    if template_path is not None and target_name == "all":
        raise click.UsageError("--write-template is for one target")
    if accuracy is not None and target_name != "all":
        raise click.UsageError("--accuracy is a column of --target all; `tflq bench` measures one target")
    original = read_model(model)
    chosen = _samples(original, calibration, inputs, real, samples or DEFAULT_SAMPLES, seed)
    found = calibrated(original, calibration, real)
    if target_name == "all":
        return convert_all(model, original, found, chosen, accuracy, folder, report, as_json)
    target, settings = choose_target(target_name, assignments, layers)
    execution = for_target(found.main, target, settings)
    with output_folder(folder) as scratch:
        artefacts = target.emit(execution.graph, found)
        for name, data in artefacts.items():
            (scratch / name).write_bytes(data)
    compared, measured = check_emitted(execution, artefacts, chosen), measure(execution, found, chosen)
    if template_path is not None:
        write_template(template_path, target, settings, found, measured)
    converted = Converted(model, target_name, folder, execution.graph, artefacts, compared, measured)
    if report is not None:
        _write_page(report, converted)
    if as_json:
        output.json_report(conversion_report(converted))
    else:
        print_conversion(converted)
    return 0


def _write_page(path: Path, converted: Converted) -> None:
    from tflq.report.conversion import conversion_page

    files = {name: len(data) for name, data in converted.artefacts.items()}
    remarks = (sentence(converted.compared), closeness(converted.measured))
    page = conversion_page(converted.model, converted.target, converted.graph, files, remarks, converted.measured)
    write_report(path, page)


def check_emitted(
    execution: Execution, artefacts: Mapping[str, bytes], samples: Samples
) -> EmittedDifference | str | None:
    """Compare the emitted .tflite, if there is one, with the target's arithmetic; in words why it could not be done."""
    from tflq.analysis.emitted import compare_emitted
    from tflq.analysis.oracle import Oracle
    from tflq.errors import MissingExtraError, OracleError

    content = next((data for name, data in artefacts.items() if name.endswith(".tflite")), None)
    if content is None:
        return None
    try:
        with Oracle() as oracle:
            return compare_emitted(execution, content, samples, oracle)
    except (MissingExtraError, OracleError) as error:
        return str(error)


def measure(execution: Execution, model: Model, samples: Samples) -> Similarities | str:
    """Return how close each layer is to floating point; in words why it could not be measured."""
    from tflq.analysis.similarity import similarities
    from tflq.errors import GraphError, UnsupportedError

    with output.Bar("compare", samples.count) as bar:
        try:
            return similarities(execution, model, samples, bar.advance)
        except (GraphError, UnsupportedError) as error:
            return str(error)


def write_template(path: Path, target: Target, settings: Settings, model: Model, measured: Similarities | str) -> None:
    """Write the template of a conversion, with the figures of each layer."""
    from tflq.cli.convert_output import figures_of
    from tflq.converters.template import template_bytes
    from tflq.files import write_bytes

    write_bytes(path, template_bytes(target.name, target.settings, settings, model.main, figures_of(measured)))


def _samples(
    model: Model, choice: CalibrationChoice, inputs: tuple[str, ...], real: bool, count: int, seed: int
) -> Samples:
    """Return the samples of --input, else the first ones of --calibrate, else random ones."""
    from tflq.analysis.inputs import GivenSamples

    chosen = choose_samples(model, inputs or choice.files, real, count, seed)
    return chosen if inputs or not choice.files else GivenSamples(chosen.take(0, min(count, chosen.count)))
