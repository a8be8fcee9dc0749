"""`tflq demo`: everything once, on the model inside the package."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.api.demo import Demo, DemoRow, demo
from tflq.api.inspect import inspect
from tflq.api.verify import VerifyResult
from tflq.cli import output
from tflq.cli.demo_files import demo_output
from tflq.cli.options import reporting
from tflq.quoting import shell_word

if TYPE_CHECKING:
    from tflq.emit.written import EmittedDifference


@click.command("demo")
@demo_output
@reporting
def command(as_json: bool) -> int:
    """Show tflq at work on a small model that reads handwritten digits, on images that it has never seen.

    Exit status 1 if an element differs from TFLite.
    """
    found = demo()
    if as_json:
        output.json_report(found.to_dict())
    else:
        _introduce(found)
        _tell(found.verified)
        _print_rows(found.measured)
        _print_next(found.path)
    return 0 if isinstance(found.verified, str) or found.verified.verdict.is_equal else 1


def _introduce(found: Demo) -> None:
    facts, size = inspect(found.model).graphs[0], output.size(found.path.stat().st_size)
    output.line("The model: a small convolutional network that reads handwritten digits.")
    output.line(f"  {found.path.name}: {size}, {len(facts.operators)} operators, {facts.macs:,} MACs")
    output.line(f"  {found.data.samples.count} test images of 8 x 8 pixels, none of them used in training")
    output.line()


def _tell(found: VerifyResult | str) -> None:
    output.line("1. Is tflq's arithmetic TFLite's? Every tensor of every image, bit for bit:")
    if isinstance(found, str):
        output.line("  not compared, because TFLite is not installed here. To compare: pip install 'tflq[litert]'")
    else:
        verdict = found.verdict
        total = verdict.total
        output.line(f"  {total.differing} of {total.elements} elements differ from TFLite")
        output.line(f"  ({len(verdict.compared)} tensors, {verdict.samples} images, {verdict.identity})")
    output.line()


def _print_rows(rows: Sequence[DemoRow]) -> None:
    output.line("2. The same model for each target: how many digits does it still read right?")
    output.table(
        ("as", "right", "of", "accuracy", "largest change", "its .tflite in TFLite"),
        [
            (
                row.accuracy.name,
                str(row.accuracy.right),
                str(row.accuracy.total),
                f"{row.accuracy.percent:.1f} %",
                f"{row.change:.4f}",
                _emitted(row.emitted),
            )
            for row in rows
        ],
        right=("right", "of", "accuracy", "largest change"),
    )
    output.line("  largest change: of any probability, against the model as it is.")
    output.line("  LSB: one step of the output's scale, between the target's own integers and TFLite.")
    output.line()


def _emitted(emitted: EmittedDifference | str | None) -> str:
    if emitted is None:
        return ""
    return "not compared" if isinstance(emitted, str) else f"at most {emitted.output.largest_lsb:.1f} LSB"


def _print_next(path: Path) -> None:
    model = shell_word(str(path))
    output.line("3. What to try next, here or with a .tflite of your own:")
    for arguments in (
        f"inspect {model}",
        f"verify {model} --samples 1000",
        f"convert {model} --target gap9-ne16 --set weight_bits=4 -o digits_gap9",
        "targets",
        "models fetch",
    ):
        output.line(f"  {_program()} {arguments}")


def _program() -> str:
    """Return what calls this program from here: tflq where the shell finds this one, else its path."""
    found, called = shutil.which("tflq"), Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shell_word(sys.executable)} -m tflq"
    is_found = found is not None and called.exists() and called.samefile(found)
    return "tflq" if is_found else shell_word(sys.argv[0])
