"""Kernels from a file of the user: loaded once, in any process, and refused with the place of the fault."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.interpreter.kernels_for_tests import NAME, Calls, calls  # noqa: F401
from tflq.errors import TflqError
from tflq.interpreter import kernel_files, registry
from tflq.interpreter.kernel_files import KernelFile, load_kernel_file, loaded_kernel_files, read_kernel_file

TEXT = """
from __future__ import annotations
from dataclasses import dataclass
import numpy as np
from tflq.interpreter.registry import Kernel

@dataclass(frozen=True)
class Times:
    factor: int

def run(params, a):
    return (np.asarray(a * params.factor),)

KERNELS = {"ARITHMETIC": {"Times": Kernel(lambda node, operands: Times(3), run, "3x", "docs/times.md")}}
"""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, calls: Calls) -> None:  # noqa: F811
    monkeypatch.setattr(kernel_files, "_loaded", {})


def test_a_file_is_loaded_once(fresh: None, tmp_path: Path) -> None:
    (tmp_path / "times.py").write_text(TEXT.replace("ARITHMETIC", NAME))
    file = read_kernel_file(tmp_path / "times.py")
    assert not loaded_kernel_files()
    for _ in range(2):
        load_kernel_file(file)
    assert loaded_kernel_files() == (file,)
    found = registry.kernel(NAME, "Times")
    params = found.lower(None, None)  # type: ignore[arg-type]
    assert found.run(params, np.ones(2))[0].tolist() == [3, 3]
    assert found.module == file.module
    assert pickle.loads(pickle.dumps(params)) == params


def test_a_file_may_register_by_itself(fresh: None) -> None:
    text = TEXT.replace("KERNELS = ", "from tflq.interpreter.registry import register_kernels\nregister_kernels(")
    load_kernel_file(KernelFile("times.py", text.replace("ARITHMETIC", NAME) + ")"))
    assert registry.kernel(NAME, "Times").source == "docs/times.md"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 +", "times.py: SyntaxError: invalid syntax"),
        ("import not_there", "times.py: ModuleNotFoundError: No module named 'not_there'"),
        ("KERNELS = 3", "times.py: TflqError: a function without arguments or a mapping"),
        (TEXT.replace("ARITHMETIC", "nowhere"), "times.py: UnsupportedError: no arithmetic is called 'nowhere'"),
    ],
)
def test_a_file_that_fails_says_where(fresh: None, text: str, message: str) -> None:
    with pytest.raises(TflqError, match=message):
        load_kernel_file(KernelFile("times.py", text))
    assert not loaded_kernel_files()
    assert KernelFile("times.py", text).module not in sys.modules


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TflqError, match=r"nothing.py: .*No such file"):
        read_kernel_file(tmp_path / "nothing.py")


def _summary_in_worker(operator: str) -> str:
    return registry.kernel("tflite", operator).summary


def test_a_worker_loads_what_its_parent_has_loaded() -> None:
    file = KernelFile("times.py", TEXT.replace("ARITHMETIC", "tflite"))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, load_kernel_file, (file,)) as pool:
        assert pool.submit(_summary_in_worker, "Times").result() == "3x"
