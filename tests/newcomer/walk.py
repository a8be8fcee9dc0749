"""Walks README and docs top to bottom as a newcomer: an empty virtual environment, the wheel, each command.

    python tests/newcomer/walk.py [--python PYTHON]... [--sdist [PYTEST-ARGUMENTS]]

Needs TFLQ_DATA for the models and clips that the pages name, and a package index for what tflq needs. Without --python
it takes python3.10 and python3.13 where they are. Each example must end with status 0 or 1 and print what stands under
it. With --sdist the archive is unpacked into an empty folder, installed there with the extra `test`, and passes its own
tests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.examples import (  # noqa: E402
    documented_pages,
    examples_of,
    failures,
    is_standalone,
    is_synopsis,
    make_folder,
    plant_dump,
)

PYTHONS = ("python3.10", "python3.13")
EXTRAS = "litert,report,onnx,image,audio"
_NOT_HERE = ("--port", "tflq dut", "tls://", "power-of-two", "mish.py")
"""Examples that need a board, a host, a cluster, or a file of tests/extending."""


def build(folder: Path, python: str) -> tuple[Path, Path]:
    """Build the wheel and the sdist of a copy of the repository in an environment of their own."""
    source = folder / "source"
    ignored = shutil.ignore_patterns(".git", ".venv", "*.egg-info", "build", "dist", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, source, symlinks=True, ignore=ignored)
    own = venv(folder / "build", python)
    call(own, "-m", "pip", "install", "--quiet", "setuptools>=77", "build", "wheel")
    call(own, "-m", "build", "--no-isolation", "--outdir", folder / "dist", source)
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return wheel, sdist


def venv(folder: Path, python: str) -> Path:
    """Make an empty virtual environment; return its Python."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    return folder / "bin" / "python"


def is_there(python: str) -> bool:
    """Return whether a command starts: pyenv's is there for versions that are not chosen, too."""
    return shutil.which(python) is not None and not subprocess.run([python, "-V"], capture_output=True).returncode


def call(python: Path, *arguments: object, cwd: Path | None = None) -> None:
    """Run Python in an environment."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run([python, *map(str, arguments)], check=True, cwd=cwd, env=environment)


def walk(folder: Path, python: Path) -> list[str]:
    """Run every example with the tflq of an environment; return what is wrong."""
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    folder.mkdir()
    make_folder(folder, Path(os.environ["TFLQ_DATA"]))
    plant_dump(folder, environment)
    wrong, count = [], 0
    for page in documented_pages(ROOT):
        examples = [e for e in examples_of(page) if not is_synopsis(e.command)]
        examples = [e for e in examples if not any(words in e.command for words in _NOT_HERE)]
        place = folder / page.stem if is_standalone(page) else folder
        place.mkdir(exist_ok=True)
        count += len(examples)
        wrong += failures(examples, place, environment)
    print(f"{python}: {count} examples, {len(wrong)} wrong")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Walk with each Python; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description="Walks README and docs as a newcomer.")
    parser.add_argument("--python", action="append", help="an interpreter; python3.10 and python3.13 unless told")
    parser.add_argument("--sdist", nargs="*", metavar="ARGUMENT", help="let the sdist pass its own tests: pytest's")
    options = parser.parse_args(arguments)
    if not os.environ.get("TFLQ_DATA"):
        parser.error("TFLQ_DATA is not set: name the folder with models and datasets")
    pythons = options.python or [name for name in PYTHONS if is_there(name)]
    if not pythons:
        parser.error(f"none of {', '.join(PYTHONS)} starts: name an interpreter with --python")
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="newcomer") as scratch:
        folder = Path(scratch)
        wheel, sdist = build(folder, pythons[0])
        for number, python in enumerate(pythons):
            own = venv(folder / f"venv{number}", python)
            call(own, "-m", "pip", "install", "--quiet", f"{wheel}[{EXTRAS}]")
            wrong += walk(folder / f"walk{number}", own)
        if options.sdist is not None:
            with tarfile.open(sdist) as archive:
                archive.extractall(folder / "sdist", filter="data")
            (unpacked,) = (folder / "sdist").iterdir()
            own = venv(folder / "sdist_venv", pythons[0])
            call(own, "-m", "pip", "install", "--quiet", "--editable", f"{unpacked}[test]")
            call(own, "-m", "pytest", "--all", "-q", *options.sdist, cwd=unpacked)
    print("\n\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
