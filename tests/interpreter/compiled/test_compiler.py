"""The cache of the compiled library: who may write it, what is loaded, and what happens without a compiler."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.support import c_compiler
from tests.support.integer_networks import integer_network
from tflq.errors import TflqWarning
from tflq.interpreter import Engine
from tflq.interpreter.compiled import compiler
from tflq.interpreter.compiled.compiler import CLayer, CompilerError, CPlan, load_library

load_again = load_library.__wrapped__

SOURCE = """
int tflq_lanes(void) {{ return 16; }}
#ifdef WITHOUT_DOT
int tflq_group(void) {{ return 1; }}
#else
int tflq_group(void) {{ return 4; }}
#endif
int tflq_blocks(void) {{ return 4; }}
int tflq_taps(void) {{ return 1; }}
int tflq_layer_bytes(void) {{ return {layer}; }}
int tflq_plan_bytes(void) {{ return {plan}; }}
void tflq_run(void) {{}}
"""
"""What a library must have, compiled in no time."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a small source."""
    c_compiler.compiler()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "kernels.c"
    source.write_text(SOURCE.format(layer=ctypes.sizeof(CLayer), plan=ctypes.sizeof(CPlan)))
    monkeypatch.setattr(compiler, "SOURCE", source)
    return tmp_path / "tflq"


def test_a_library_is_compiled_once_and_only_the_users_own_is_loaded(cache: Path) -> None:
    load_again()
    (path,) = cache.iterdir()
    assert cache.stat().st_mode & 0o777 == 0o700
    before = path.stat().st_mtime_ns
    load_again()
    assert path.stat().st_mtime_ns == before

    path.chmod(0o722)  # others can write it: removed, and made again
    load_again()
    (path,) = cache.iterdir()
    assert path.stat().st_mode & 0o077 == 0

    os.unlink(path)  # the library is loaded: only a new file may be spoilt
    path.write_bytes(b"spoilt")
    load_again()
    assert path.read_bytes() != b"spoilt"

    cache.chmod(0o755)
    with pytest.raises(CompilerError, match="mode 0700"):
        load_again()


def test_several_writers_leave_one_library(cache: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        found = [future.result() for future in [pool.submit(load_again) for _ in range(3)]]
    assert len({library.lanes for library in found}) == 1
    assert all(path.name.endswith(".so") and not path.name.startswith(".") for path in cache.iterdir())


def test_other_flags_make_another_library(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(compiler.WITHOUT_DOT, raising=False)
    load_again()
    monkeypatch.setenv(compiler.WITHOUT_DOT, "1")
    assert not load_again().multiplies_bytes
    assert len(list(cache.iterdir())) == 2


VECTORS = """
#include "vectors.h"
reals larger_of(reals a, reals b) { return smaller(larger(a, b), all(9)); }
reals loaded(const char *at) { return load_elements(at); }
"""


@pytest.mark.parametrize("without_dot", [False, True])
def test_loops_over_lanes_become_vector_instructions(tmp_path: Path, without_dot: bool) -> None:
    cc = c_compiler.compiler()
    if platform.machine() not in compiler.X86:
        pytest.skip("the instructions of x86 are looked for")
    if b"__clang__" in subprocess.run([cc, "-dM", "-E", "-x", "c", os.devnull], check=True, capture_output=True).stdout:
        pytest.skip("clang makes scalar code of some loops over lanes: 1.5 times as slow (docs/guides/c99.md)")
    source, assembly = tmp_path / "lanes.c", tmp_path / "lanes.s"
    source.write_text(VECTORS)
    flags = [*compiler.FLAGS, *compiler.for_this_processor(), *(["-DWITHOUT_DOT"] if without_dot else [])]
    include = f"-I{Path(compiler.__file__).parent}"
    subprocess.run([cc, *flags, include, "-S", str(source), "-o", str(assembly)], check=True)
    text = assembly.read_text()
    assert "maxps" in text
    assert not {"maxss", "minss"} & {word.lstrip("v") for word in text.split()}


def test_without_a_compiler_numpy_runs_and_a_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr(compiler, "load_library", load_again)
    graph = integer_network(0)
    with pytest.warns(TflqWarning, match="CC=no-such-compiler is not found; .* numpy runs instead"):
        engine = Engine(graph, backend="c")
    assert engine.backend == "numpy"
    assert len(engine.in_numpy()) == len(engine.graph.nodes)
    x = np.zeros((2, *graph.tensors[graph.inputs[0]].shape), graph.tensors[graph.inputs[0]].dtype.storage)
    assert np.array_equal(engine.run([x])[graph.outputs[0]], Engine(graph).run([x])[graph.outputs[0]])


def test_a_build_that_fails_is_told_with_the_compilers_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "FLAGS", (*compiler.FLAGS, "-Dint=)"))
    with pytest.raises(CompilerError, match=r"fails on kernels\.c: .*error"):
        load_again()
    assert not list(cache.iterdir())
