"""`tflq demo`: a tour on the model inside the package."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from tflq.api.demo import demo
from tflq.cli import output
from tflq.cli.demo_files import demo_output, write_files
from tflq.cli.options import reporting
from tflq.quoting import shell_word


@click.command("demo")
@demo_output
@reporting
def command(folder: Path | None) -> int:
    """Show tflq at work on a small model that reads handwritten digits, on images that were not used in training.

    Exit status 1 if an element differs from TFLite.
    """
    if folder is not None:
        write_files(folder)
        return 0
    result = demo()
    status = output.show(result)
    _print_next(result.path)
    return status


def _print_next(path: Path) -> None:
    model = shell_word(str(path))
    output.remark("")
    output.remark("Next steps, with this model or another .tflite:")
    for arguments in (
        f"inspect {model}",
        f"verify {model} --samples 1000",
        f"convert {model} --target gap9-ne16 --set weight_bits=4 -o digits_gap9",
        "targets",
        "models fetch",
    ):
        output.remark(f"  {_program()} {arguments}")


def _program() -> str:
    """Return the command for this program: tflq if the shell resolves it to this program, else its path."""
    resolved, called = shutil.which("tflq"), Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shell_word(sys.executable)} -m tflq"
    is_on_path = resolved is not None and called.exists() and called.samefile(resolved)
    return "tflq" if is_on_path else shell_word(sys.argv[0])
