"""`tflq demo`: everything once, on the model inside the package."""

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
    """Show tflq at work on a small model that reads handwritten digits, on images that it has never seen.

    Exit status 1 if an element differs from TFLite.
    """
    if folder is not None:
        write_files(folder)
        return 0
    found = demo()
    status = output.show(found)
    _print_next(found.path)
    return status


def _print_next(path: Path) -> None:
    model = shell_word(str(path))
    output.remark("")
    output.remark("What to try next, here or with a .tflite of your own:")
    for arguments in (
        f"inspect {model}",
        f"verify {model} --samples 1000",
        f"convert {model} --target gap9-ne16 --set weight_bits=4 -o digits_gap9",
        "targets",
        "models fetch",
    ):
        output.remark(f"  {_program()} {arguments}")


def _program() -> str:
    """Return what calls this program from here: tflq where the shell finds this one, else its path."""
    found, called = shutil.which("tflq"), Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shell_word(sys.executable)} -m tflq"
    is_found = found is not None and called.exists() and called.samefile(found)
    return "tflq" if is_found else shell_word(sys.argv[0])
