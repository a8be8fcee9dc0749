"""`tflq runtimes`: the runtimes of a .tflite file."""

from __future__ import annotations

import click

from tflq.api.runtimes import RuntimesResult, runtimes
from tflq.cli import output
from tflq.cli.options import reporting


@click.command("runtimes")
@click.argument("names", nargs=-1, metavar="[RUNTIME]...")
@reporting
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List the runtimes of a .tflite file and, for each, the rules that differ from TFLite's reference kernels."""
    result = runtimes(*names)
    output.show(result, as_json, lambda: _print(result))


def _print(result: RuntimesResult) -> None:
    for number, runtime in enumerate(result.runtimes):
        if number:
            output.line()
        output.line(f"{runtime.name}: {runtime.runs_in}; compared with {runtime.oracle}")
        if runtime.rules:
            output.table(("operator", "rule"), list(runtime.rules.items()))
        for part in runtime.not_modelled:
            output.line(f"not modelled: {part}")
