"""`tflq run`: a model over many samples, in any arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tflq.api.options import SampleOptions, changed
from tflq.api.run import RunOptions, RunResult, run
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.in_force import BACKEND_OPTION
from tflq.cli.options import (
    ARITHMETIC_OPTION,
    JOBS_OPTION,
    MODEL_ARGUMENT,
    RUNTIME_OPTION,
    SCHEDULER_OPTION,
    STATE_OPTION,
    THREADS_OPTION,
    calibration_options,
    output_option,
    reporting,
    sample_options,
    target_options,
)
from tflq.cli.outputs import writing
from tflq.quoting import Json

if TYPE_CHECKING:
    from tflq.graph import Array

_VALUES = 12
"""Values of the first sample that are shown."""


@click.command("run", cls=SectionedCommand)
@MODEL_ARGUMENT
@sample_options(1)
@ARITHMETIC_OPTION
@RUNTIME_OPTION
@target_options("Quantize for this target and run its integers.")
@calibration_options
@STATE_OPTION
@THREADS_OPTION
@BACKEND_OPTION
@JOBS_OPTION
@SCHEDULER_OPTION
@click.option("--all-tensors", is_flag=True, help="Return every tensor that an operator writes, not the outputs alone.")
@output_option(
    "-o", "--output", metavar="FILE.npz", help="Write the tensors, each by its name: dtype[samples, *shape]."
)
@reporting
@writing
def command(model: str, samples: SampleOptions, as_json: bool, **options: object) -> None:
    """Run MODEL over samples, and show or write what comes out.

    Samples are in the model's own type and encoding (or real numbers, with --real); a target converts them itself.
    """
    found = run(model, samples, changed(RunOptions(), options), progress=output.progress)
    output.show(found, as_json, lambda: _print(found))


def _print(found: RunResult) -> None:
    columns = ("tensor", "type", "smallest", "largest", "first sample")
    output.line(f"{found.arithmetic}: {found.samples} samples")
    output.table(
        columns,
        [
            (
                output.short(name),
                f"{array.dtype}{list(array.shape)}",
                _number(row["smallest"]),
                _number(row["largest"]),
                _values(array),
            )
            for (name, array), row in zip(found.tensors.items(), found.rows(), strict=True)
        ],
        right=("smallest", "largest"),
    )
    if found.output is not None:
        output.line(f"written: {found.output}")


def _number(value: Json) -> str:
    return output.number(float(value)) if isinstance(value, (int, float)) else ""


def _values(array: Array) -> str:
    flat = array[0].ravel() if array.size else array.ravel()
    shown = " ".join(_number(v.item()) if array.dtype.kind in "fiub" else str(v) for v in flat[:_VALUES])
    return shown + (" ..." if flat.size > _VALUES else "")
