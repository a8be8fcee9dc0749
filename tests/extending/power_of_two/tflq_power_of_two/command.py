"""`tflq exponents`: a command from outside."""

from __future__ import annotations

import json
from pathlib import Path

import click

import tflq
from tflq.cli.options import reporting
from tflq.converters.settings import parse_settings
from tflq_power_of_two.kernels import exponent_of
from tflq_power_of_two.target import POWER_OF_TWO


@click.command("exponents", short_help="List the power of two of each tensor.")
@click.argument("model", type=click.Path(path_type=Path))
@reporting
def command(model: Path, as_json: bool) -> int:
    """List f of each int8 tensor of MODEL, whose scale is 2^-f."""
    graph = POWER_OF_TWO.quantize(tflq.read_model(model).main, parse_settings(POWER_OF_TWO.settings))
    written = [graph.tensors[t] for node in graph.nodes for t in node.outputs]
    found = {tensor.name: exponent_of(tensor) for tensor in written}
    if as_json:
        click.echo(json.dumps(found))
    else:
        for name, exponent in found.items():
            click.echo(f"{exponent:3}  {name}")
    return 0
