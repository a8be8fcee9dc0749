"""`tflq run`: a model over many samples, in anybody's arithmetic."""

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
    THREADS_OPTION,
    choose_samples,
    chosen_state,
    read_model,
    reporting,
    sampling,
    tensor_names,
)
from tflq.cli.target_options import choose_execution, one_arithmetic

if TYPE_CHECKING:
    import numpy as np

    from tflq.analysis.executions import Execution
    from tflq.analysis.inputs import Samples
    from tflq.graph import Array, Graph


@click.command("run")
@MODEL_ARGUMENT
@sampling(1)
@one_arithmetic
@calibration
@STATE_OPTION
@THREADS_OPTION
@click.option("--all-tensors", is_flag=True, help="Return every tensor that an operator writes, not the outputs alone.")
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="Write the tensors, each by its name: dtype[samples, *shape].",
)
@reporting
def command(
    model: str,
    inputs: tuple[str, ...],
    real: bool,
    samples: int | None,
    seed: int,
    arithmetic: str | None,
    target_name: str | None,
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    state: str | None,
    threads: int,
    all_tensors: bool,
    path: Path | None,
    as_json: bool,
    calibration: CalibrationChoice,
) -> None:
    """Run MODEL over samples, and show or write what comes out.

    Samples are in the model's own type and encoding (or real numbers, with --real); a target converts them itself.
    """
    if path is not None and path.suffix != ".npz":
        raise click.UsageError(f"--output {path}: the name must end in .npz")
    found = read_model(model)
    chosen = choose_samples(found, inputs, real, samples or 1, seed)
    if target_name is None:
        refuse_calibration_without_target(calibration)
    found = calibrated(found, calibration, real)
    execution = choose_execution(found, arithmetic, target_name, assignments, layers, chosen_state(state))
    execution.engine.threads = threads
    indices = _indices(execution.graph, all_tensors)
    names = tensor_names(execution.graph, indices)
    tensors = _run(execution, chosen, indices)
    if path is not None:
        _write(path, {names[t]: tensors[t] for t in indices})
    _show(execution, chosen, {names[t]: (t, tensors[t]) for t in indices}, path, as_json)


def _indices(graph: Graph, all_tensors: bool) -> tuple[int, ...]:
    return (
        tuple(t for node in graph.nodes for t in node.outputs) if all_tensors else tuple(dict.fromkeys(graph.outputs))
    )


def _run(execution: Execution, samples: Samples, indices: tuple[int, ...]) -> dict[int, Array]:
    from tflq.interpreter.execution.values import concatenate

    with output.Bar("run", samples.count) as bar:
        chunks = []
        for chunk in execution.iterate(samples, indices):
            chunks.append(chunk)
            bar.advance(len(next(iter(chunk.values()))) if chunk else 0)
    return {t: concatenate([chunk[t] for chunk in chunks]) for t in indices}


def _write(path: Path, arrays: dict[str, Array]) -> None:
    from tflq.analysis.archives import write_npz

    write_npz(path, arrays)


def _show(
    execution: Execution, samples: Samples, tensors: dict[str, tuple[int, Array]], path: Path | None, as_json: bool
) -> None:
    rows = {name: _facts(array) for name, (_, array) in tensors.items()}
    if as_json:
        report: dict[str, output.Json] = {
            "arithmetic": execution.name,
            "samples": samples.count,
            "tensors": [{"name": name, **rows[name]} for name in tensors],
        }
        output.json_report({**report, "output": None if path is None else str(path)})
        return
    columns = ("tensor", "type", "smallest", "largest", "first sample")
    output.line(f"{execution.name}: {samples.count} samples")
    output.table(
        columns,
        [
            (
                output.short(name),
                f"{array.dtype}{list(array.shape)}",
                _number(rows[name]["smallest"]),
                _number(rows[name]["largest"]),
                _values(array),
            )
            for name, (_, array) in tensors.items()
        ],
        right=("smallest", "largest"),
    )
    if path is not None:
        output.line(f"written: {path}")


def _facts(array: Array) -> dict[str, output.Json]:
    countable = array.dtype.kind in "fiub" and array.size
    return {
        "dtype": str(array.dtype),
        "shape": array.shape,
        "smallest": array.min().item() if countable else None,
        "largest": array.max().item() if countable else None,
    }


def _number(value: output.Json) -> str:
    return output.number(float(value)) if isinstance(value, (int, float)) else ""


def _values(array: Array) -> str:
    flat: np.ndarray[tuple[int], np.dtype[np.generic]] = array[0].ravel() if array.size else array.ravel()
    shown = " ".join(_number(v.item()) if array.dtype.kind in "fiub" else str(v) for v in flat[:12])
    return shown + (" ..." if flat.size > 12 else "")
