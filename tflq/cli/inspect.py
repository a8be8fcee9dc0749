"""`tflq inspect`: what a model holds."""

from __future__ import annotations

import click

from tflq.api.inspect import inspect
from tflq.cli import output
from tflq.cli.options import MODEL_ARGUMENT, reporting


@click.command("inspect")
@MODEL_ARGUMENT
@click.option("--tensors", "show_tensors", is_flag=True, help="List every tensor, constants too.")
@reporting
def command(model: str, show_tensors: bool) -> int:
    """Show what MODEL holds.

    Operators, tensors, shapes, quantization, sizes, multiply-accumulates by precision, the memory of activations over
    the order of execution, signatures, metadata, operators without a kernel, and what each target would refuse.
    """
    return output.show(inspect(model), *(("tensors",) if show_tensors else ()))
