"""The packages of tflq with their code and their own tests, for figures a package (docs/guides/limits.md)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    """Code that one set of tests judges.

    Attributes:
        code: Patterns of its modules, from the root of the repository.
        tests: Patterns of its test files.
        starts_processes: True if most of its code runs in processes that its tests start.
    """

    code: tuple[str, ...]
    tests: tuple[str, ...]
    starts_processes: bool = False

    def modules(self, root: Path) -> list[Path]:
        """Return the modules of the package below a root."""
        return _find(root, self.code)

    def test_files(self, root: Path) -> list[Path]:
        """Return the test files of the package below a root."""
        return _find(root, self.tests)


def _find(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({path for pattern in patterns for path in root.glob(pattern)})


def _in_folders(code: tuple[str, ...], tests: tuple[str, ...], *, starts_processes: bool = False) -> Package:
    """Return the package of folders of code and of tests."""
    modules = tuple(f"{folder}/**/*.py" for folder in code)
    return Package(modules, tuple(f"{folder}/**/test_*.py" for folder in tests), starts_processes)


def _arithmetic(name: str, *others: str) -> Package:
    """Return a target's package: its kernels and its converter, and those of `others`."""
    names = (name, *others)
    folders = [f"{top}/{name}" for name in names for top in ("interpreter/kernels", "converters")]
    tests = [f"tests/{top}/{name}" for name in names for top in ("interpreter", "converters")]
    return _in_folders(tuple(f"tflq/{folder}" for folder in folders), tuple(tests))


def _with_commands(name: str, *tests: str) -> Package:
    """Return a package that commands print results of: its own tests, more of them, and the recordings of commands."""
    return Package((f"tflq/{name}/**/*.py",), (f"tests/{name}/**/test_*.py", "tests/cli/test_goldens.py", *tests))


_KERNELS = tuple(f"tests/interpreter/{name}/**/test_*.py" for name in ("float", "move", "plain", "tflite"))
"""Tests of the kernels that compute with what lies below them."""


def _below_kernels(folder: str) -> Package:
    """Return a package of the interpreter that kernels use: its own tests and those of kernels."""
    return Package((f"tflq/interpreter/{folder}/**/*.py",), (f"tests/interpreter/{folder}/**/test_*.py", *_KERNELS))


def _beside_folders(part: str, *folders: str) -> Package:
    """Return the package of the modules at the top of a part of tflq and of some of its folders."""
    code = (f"tflq/{part}/*.py", *(f"tflq/{part}/{folder}/**/*.py" for folder in folders))
    return Package(code, (f"tests/{part}/test_*.py", *(f"tests/{part}/{folder}/**/test_*.py" for folder in folders)))


PACKAGES = {
    **{name: _arithmetic(name) for name in ("gap9", "nnie", "tpu_mlir", "openvino", "aipu", "tflite", "tflm")},
    "onnx": _arithmetic("onnx", "exchange"),
    "converters": _beside_folders("converters", "calibration", "passes", "tflite_quantizer"),
    "float": Package(
        (
            "tflq/interpreter/kernels/*.py",
            *(f"tflq/interpreter/kernels/{f}/**/*.py" for f in ("float", "move", "plain")),
        ),
        _KERNELS[:3],
    ),
    **{name: _below_kernels(name) for name in ("numerics", "accumulate", "execution", "operands")},
    "layers": _in_folders(("tflq/interpreter/layers",), ("tests/interpreter",)),
    "interpreter": _beside_folders("interpreter", "recording", "compiled"),
    "graph": _in_folders(("tflq/graph",), ("tests/graph",)),
    "schemas": _in_folders(("tflq/schemas",), ("tests/schemas",)),
    "sampling": _in_folders(("tflq/sampling",), ("tests/sampling",)),
    "oracle": _in_folders(("tflq/oracle",), ("tests/oracle",), starts_processes=True),
    "parallel": _in_folders(("tflq/parallel",), ("tests/parallel",), starts_processes=True),
    "diagnosis": _with_commands("diagnosis", "tests/faults/test_*.py"),
    "emit": _with_commands("emit"),
    "benchmarks": _with_commands("benchmarks"),
    "precision": _with_commands("precision"),
    "report": _with_commands("report", "tests/cli/test_report.py"),
    "api": _in_folders(("tflq/api",), ("tests/api", "tests/cli")),
    "cli": _in_folders(("tflq/cli",), ("tests/cli",)),
    "tflite_interpreter": Package(
        ("tflq/tflite_interpreter/**/*.py", "tflq/lite/**/*.py"),
        ("tests/test_tflite_interpreter.py", "tests/test_lite.py"),
    ),
    "modules": Package(
        ("tflq/*.py",),
        ("tests/test_*.py", "tests/hostile/test_*.py", "tests/extending/test_*.py", "tests/cli/test_app.py"),
    ),
}
"""Name -> package; together all of tflq/."""
