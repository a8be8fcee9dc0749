"""`tflq dequantize`: write the float network of a quantized model."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.written_model import dequantize
from tflq.cli import output
from tflq.cli.options import MODEL_ARGUMENT, reporting, tflite_output
from tflq.cli.outputs import writing


@click.command("dequantize")
@MODEL_ARGUMENT
@tflite_output
@reporting
@writing
def command(model: str, path: Path) -> int:
    """Write the float view of MODEL: float32 in place of every quantized tensor, constants dequantized.

    QUANTIZE, DEQUANTIZE and FAKE_QUANT are removed; ranges of activations are stored as minimum and maximum.
    """
    return output.show(dequantize(model, path))
