"""`tflq convert`: a model's files for a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.calibration_options import CalibrationChoice, calibrated, calibration
from tflq.cli.common import MODEL_ARGUMENT, choose_samples, read_model, reporting, sampling
from tflq.cli.convert_all import convert_all
from tflq.cli.target_options import choose_target, target_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tflq.analysis.emitted import EmittedDifference
    from tflq.analysis.executions import Execution
    from tflq.analysis.inputs import Samples
    from tflq.graph import Graph, Node

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
    "--accuracy",
    metavar="TASK=DIR",
    help="With `--target all`: measure accuracy on a labelled data set of `tflq bench`.",
)
@sampling(DEFAULT_SAMPLES)
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
    accuracy: str | None,
) -> int:
    """Quantise MODEL for a target and write its files into a folder: all of them, or none after an error.

    The .tflite among them is run by TFLite on the samples (random ones without --input) and compared with the target's
    own arithmetic; where neither ai-edge-litert nor tensorflow is installed this is left out.

    `--target all` writes a folder for each target, with its defaults, and compares them in one table; the status is 1
    if a target refuses the model.
    """
    from tflq.analysis.executions import for_target
    from tflq.files import output_folder

    if target_name == "all" and (assignments or layers):
        raise click.UsageError("--set and --layer are settings of one target; --target all takes each one's defaults")
    if accuracy is not None and target_name != "all":
        raise click.UsageError("--accuracy is a column of --target all; `tflq bench` measures one target")
    original = read_model(model)
    chosen = choose_samples(original, inputs, real, samples or DEFAULT_SAMPLES, seed)
    found = calibrated(original, calibration, real)
    if target_name == "all":
        return convert_all(model, original, found, chosen, accuracy, folder, as_json)
    target, settings = choose_target(target_name, assignments, layers)
    execution = for_target(found.main, target, settings)
    with output_folder(folder) as scratch:
        artefacts = target.emit(execution.graph, found)
        for name, data in artefacts.items():
            (scratch / name).write_bytes(data)
    compared = check_emitted(execution, artefacts, chosen)
    if as_json:
        output.json_report(_report(model, execution.graph, target_name, folder, artefacts, compared))
    else:
        _print(execution.graph, target_name, folder, artefacts, compared)
    return 0


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


def sentence(compared: EmittedDifference | str | None) -> str:
    """Say in words how far the emitted .tflite is from the target."""
    if compared is None:
        return "the target writes no .tflite"
    if isinstance(compared, str):
        return f"the .tflite was not compared: {compared}"
    found = compared.output
    return (
        f"the .tflite in TFLite against the target's arithmetic: {found.differing} of {found.elements} output elements "
        f"differ, by {output.number(found.largest_lsb)} LSB at most ({compared.samples} samples, {compared.identity})"
    )


def _print(
    graph: Graph,
    target_name: str,
    folder: Path,
    artefacts: Mapping[str, bytes],
    compared: EmittedDifference | str | None,
) -> None:
    output.line(f"{target_name}: {len(graph.nodes)} operators")
    rows = [_layer(graph, number, node, compared) for number, node in enumerate(graph.nodes)]
    columns = ("#", "operator", "layer", "engine", "weights", "output", "TFLite, LSB", "reason")
    output.table(columns, rows, right=("#", "TFLite, LSB"))
    output.line()
    for name, data in artefacts.items():
        output.line(f"{folder / name}: {output.size(len(data))}")
    output.line(sentence(compared))


def _layer(graph: Graph, number: int, node: Node, compared: EmittedDifference | str | None) -> tuple[str, ...]:
    facts = _facts(graph, node)
    outputs = ", ".join(
        f"{graph.tensors[t].dtype.value}[{','.join(map(str, graph.tensors[t].shape))}]" for t in node.outputs
    )
    bits = facts["weight_bits"]
    return (
        str(number),
        node.operator,
        node.name,
        str(facts["engine"] or ""),
        f"{bits} bits" if bits else "",
        outputs,
        _largest_lsb(node, compared),
        str(facts["reason"] or ""),
    )


def _largest_lsb(node: Node, compared: EmittedDifference | str | None) -> str:
    """Return how far TFLite's result of the emitted model is from this node's; empty where it has none."""
    if compared is None or isinstance(compared, str):
        return ""
    found = [compared.tensors[t].largest_lsb for t in node.outputs if t in compared.tensors]
    return output.number(max(found)) if found else ""


def _facts(graph: Graph, node: Node) -> dict[str, output.Json]:
    """Return what the target put down on the node: its engine, why, and the width of the weights."""
    from tflq.graph import ABSENT, Affine, Logarithmic

    weights = graph.tensors[node.inputs[1]] if len(node.inputs) > 1 and node.inputs[1] != ABSENT else None
    affine = weights.quantisation if weights is not None and weights.is_constant else None
    return {
        "engine": node.attributes.text("engine", ""),
        "reason": node.attributes.text("engine_reason", ""),
        "weight_bits": affine.bits if isinstance(affine, (Affine, Logarithmic)) else None,
    }


def _report(
    model: str,
    graph: Graph,
    target_name: str,
    folder: Path,
    artefacts: Mapping[str, bytes],
    compared: EmittedDifference | str | None,
) -> dict[str, output.Json]:
    return {
        "model": model,
        "target": target_name,
        "layers": [
            {"index": i, "operator": node.operator, "name": node.name, **_facts(graph, node)}
            for i, node in enumerate(graph.nodes)
        ],
        "files": {str(folder / name): len(data) for name, data in artefacts.items()},
        "emitted_tflite": compared_report(compared),
    }


def compared_report(compared: EmittedDifference | str | None) -> output.Json:
    """Return the comparison as JSON: an object, null without a .tflite, or the words why it could not be done."""
    if compared is None or isinstance(compared, str):
        return compared
    return {
        "oracle": str(compared.identity),
        "samples": compared.samples,
        "elements": compared.output.elements,
        "differing": compared.output.differing,
        "largest_lsb": compared.output.largest_lsb,
        "tensors": {
            str(t): {"differing": s.differing, "largest_lsb": s.largest_lsb} for t, s in compared.tensors.items()
        },
    }
