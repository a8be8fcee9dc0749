"""`tflq exponents`: a command from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import click

import tflq
from tflq.api.result import Result
from tflq.cli import output
from tflq.cli.options import reporting
from tflq.converters.settings import parse_settings
from tflq.report import Table, Verdict, identifier, number
from tflq_power_of_two.kernels import exponent_of
from tflq_power_of_two.target import POWER_OF_TWO


@dataclass(frozen=True)
class ExponentsResult(Result):
    """The power of two of each int8 tensor."""

    exponents: Mapping[str, int]

    @property
    def verdict(self) -> Verdict:
        """Number of tensors."""
        return Verdict("", len(self.exponents), "tensors with a power of two")

    def tables(self) -> Sequence[Table]:
        """Return a row per tensor."""
        columns = (identifier("name", "tensor", itemgetter(0)), number("exponent", "f", itemgetter(1)))
        return [Table("tensors", columns, list(self.exponents.items()))]


@click.command("exponents", short_help="List the power of two of each tensor.")
@click.argument("model", type=click.Path(path_type=Path))
@reporting
def command(model: Path) -> int:
    """List f of each int8 tensor of MODEL, whose scale is 2^-f."""
    graph = POWER_OF_TWO.quantize(tflq.read_model(model).main, parse_settings(POWER_OF_TWO.settings))
    written = [graph.tensors[t] for node in graph.nodes for t in node.outputs]
    return output.show(ExponentsResult({tensor.name: exponent_of(tensor) for tensor in written}))
