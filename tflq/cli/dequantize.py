"""`tflq dequantize`: the float network behind a quantised model."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.cli import output
from tflq.cli.common import MODEL_ARGUMENT, read_model, reporting


@click.command("dequantize")
@MODEL_ARGUMENT
@click.option(
    "-o",
    "--output",
    "path",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.tflite",
    help="Where to write.",
)
@reporting
def command(model: str, path: Path, as_json: bool) -> None:
    """Write the float view of MODEL: float32 in place of every quantised tensor, constants dequantised.

    QUANTIZE, DEQUANTIZE and FAKE_QUANT go; ranges of activations stay in the file as minimum and maximum.
    """
    from tflq.converters.dequantized import dequantized
    from tflq.converters.tflite import write_model

    found = read_model(model)
    result = dequantized(found)
    write_model(result, path)
    count = sum(
        before.dtype is not after.dtype
        for old, new in zip(found.graphs, result.graphs, strict=True)
        for before, after in ((old.tensors[a], new.tensors[b]) for a, b in zip(old.inputs, new.inputs, strict=True))
    )
    report: dict[str, output.Json] = {
        "output": str(path),
        "size_bytes": path.stat().st_size,
        "operators": sum(len(graph.nodes) for graph in result.graphs),
        "operators_before": sum(len(graph.nodes) for graph in found.graphs),
        "inputs_now_float": count,
    }
    if as_json:
        output.json_report(report)
        return
    size = output.size(path.stat().st_size)
    output.line(
        f"{path}: {size}, {report['operators']} operators of {report['operators_before']}, all real numbers float32"
    )
