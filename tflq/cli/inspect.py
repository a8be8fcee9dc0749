"""`tflq inspect`: show the content of a model."""

from __future__ import annotations

import click

from tflq.api.inspect import inspect
from tflq.cli import output
from tflq.cli.options import MODEL_ARGUMENT, reporting


@click.command("inspect")
@MODEL_ARGUMENT
@click.option("--tensors", "show_tensors", is_flag=True, help="List all tensors, including constants.")
@reporting
def command(model: str, show_tensors: bool) -> int:
    """Show the content of MODEL.

    Operators, tensors, shapes, quantization, sizes, multiply-accumulates by precision, memory of the activations over
    the order of execution, signatures, metadata, operators without a kernel, and the reasons of targets to refuse it.
    """
    return output.show(inspect(model), *(("tensors",) if show_tensors else ()))
