"""`tflq export`: test vectors of each layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.calibration_options import (
    CalibrationChoice,
    calibrated,
    calibration,
    refuse_calibration_without_target,
)
from tflq.cli.common import (
    MODEL_ARGUMENT,
    STATE_OPTION,
    choose_samples,
    chosen_state,
    read_model,
    reporting,
    sampling,
)
from tflq.cli.target_options import choose_target

if TYPE_CHECKING:
    from tflq.analysis.executions import Execution
    from tflq.analysis.vectors import LayerVectors
    from tflq.graph import Model


@click.command("export")
@MODEL_ARGUMENT
@click.option(
    "--vectors",
    "kind",
    required=True,
    type=click.Choice(("c", "hex", "npz")),
    help="c: arrays that a C99 compiler takes; hex: one file an array for $readmemh; npz: one archive a layer.",
)
@click.option("-t", "--target", "target_name", metavar="TARGET", help="Of this target's integers; TFLite's without it.")
@click.option(
    "-s",
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the target; `tflq targets` lists them. Repeat it for more.",
)
@click.option(
    "-l",
    "--layer",
    "layers",
    multiple=True,
    metavar="PATTERN",
    help="Only these layers: a number, a name or a glob of names, or an operator. PATTERN:KEY=VALUE is a setting of "
    "the target instead. Repeat it for more.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder to write into; it is made where it is missing.",
)
@calibration
@STATE_OPTION
@sampling(1)
@reporting
def command(
    model: str,
    kind: str,
    target_name: str | None,
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    folder: Path,
    state: str | None,
    inputs: tuple[str, ...],
    real: bool,
    samples: int | None,
    seed: int,
    calibration: CalibrationChoice,
    as_json: bool,
) -> None:
    """Write what each layer of MODEL reads, holds and must write, for firmware and RTL test benches.

    Inputs and expected outputs of the samples, weights and other constants, and the integers that the arithmetic
    decided: multipliers, shifts, folded biases, tables. index.json says shapes, types and scales. All files, or none
    after an error.
    """
    from tflq.analysis.vectors import collect, files_of, selected_layers
    from tflq.files import output_folder

    found = read_model(model)
    chosen = choose_samples(found, inputs, real, samples or 1, seed)
    if target_name is None:
        refuse_calibration_without_target(calibration)
    execution = _execution(
        calibrated(found, calibration, real),
        target_name,
        assignments,
        tuple(text for text in layers if "=" in text),
        state,
    )
    numbers = selected_layers(execution.graph, [text for text in layers if "=" not in text])
    vectors = collect(execution, chosen, numbers)
    facts = {"model": Path(model).name, "target": target_name, "samples": chosen.count}
    files = files_of(vectors, kind, facts)
    with output_folder(folder) as scratch:
        for name, data in files.items():
            (scratch / name).write_bytes(data)
    _show(folder, vectors, files, {**facts, "vectors": kind}, as_json)


def _execution(
    model: Model, target_name: str | None, assignments: tuple[str, ...], settings: tuple[str, ...], state: str | None
) -> Execution:
    from tflq.analysis.executions import as_is, for_target

    if target_name is not None:
        return for_target(model.main, *choose_target(target_name, assignments, settings))
    if assignments or settings:
        raise click.UsageError("--set and --layer PATTERN:KEY=VALUE are settings of a target; add --target")
    return as_is(model, chosen_state(state))


def _show(
    folder: Path,
    layers: list[LayerVectors],
    files: dict[str, bytes],
    facts: dict[str, output.Json],
    as_json: bool,
) -> None:
    if as_json:
        report: dict[str, output.Json] = {
            **facts,
            "files": {str(folder / name): len(data) for name, data in files.items()},
            "layers": [
                {"index": layer.index, "name": layer.name, "arrays": [v.name for v in layer.vectors]}
                for layer in layers
            ],
        }
        output.json_report(report)
        return
    rows = [
        (str(v.index), v.operator, v.name, v.arithmetic, str(len(v.vectors)), output.size(_bytes_of(v))) for v in layers
    ]
    output.table(("#", "operator", "layer", "arithmetic", "arrays", "size"), rows, right=("#", "arrays", "size"))
    total = output.size(sum(map(len, files.values())))
    output.line(f"{folder}: {len(files)} files, {total}, {facts['samples']} samples")


def _bytes_of(layer: LayerVectors) -> int:
    return sum(vector.values.nbytes for vector in layer.vectors)
