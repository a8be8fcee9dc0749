"""The library of kernels.c and its headers: compiled by the machine's cc when first needed, then kept in a cache.

The file's name contains a hash of its inputs (source, flags, compiler and processor) and one of its content. It is
written under a temporary name and renamed, so that several processes may make it at the same time; it is loaded only
from a folder and a file that belong to the user and that only the user can write, when its content has that hash.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import warnings
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.errors import TflqWarning
from tflq.graph import Array

T = TypeVar("T", bound=np.generic)
ALIGNMENT = 64
"""Bytes of the widest vector, and of a line of the cache."""
_INT32, _INT64, _FLOAT, _POINTER = ctypes.c_int32, ctypes.c_int64, ctypes.c_float, ctypes.c_void_p


class LayerKind(IntEnum):
    """Operation of a layer: enum kind."""

    READ = 0
    WRITE = 1
    DENSE = 2
    DEPTHWISE = 3
    AVERAGE = 4
    LARGEST = 5
    PAIR = 6
    TABLE = 7
    SOFTMAX = 8
    ROUNDED_PAIR = 9
    READ_REALS = 10
    WRITE_REALS = 11
    TO_REALS = 12
    REAL_SUM = 13


def _fields(text: str) -> list[tuple[str, type]]:
    """Return fields of lines "type: names"."""
    kinds = {"int32": _INT32, "int64": _INT64, "float": _FLOAT, "double": ctypes.c_double, "pointer": _POINTER}
    lines = [line.split(":") for line in text.strip().splitlines()]
    return [(name, kinds[kind.strip()]) for kind, names in lines for name in names.split()]


class CMap(ctypes.Structure):
    """struct map."""

    _fields_ = _fields("""
        pointer: offset scale low high wide_offset wide_scale wide_low wide_high bias at value rows
        int32: channels stride
        float: minimum maximum
    """)


class CLayer(ctypes.Structure):
    """struct layer."""

    _fields_ = [
        *_fields("""
            int32: kind slot
            int64: x second y
            int32: x_least second_least y_least x_row second_row y_row rows length
            int32: pixels blocks groups apart taps pieces piece_apart outputs neighbors x_pixel y_pixel
            int32: height width out_width kernel_y kernel_x stride_y stride_x top left
            pointer: x_at y_at steps start weights table table_at exponentials addends
            double: first_scale second_scale offset first_offset second_offset scale
            int32: is_single of_nan zero is_away
            pointer: thresholds numbers
        """),
        ("map", CMap),
    ]


class CPlan(ctypes.Structure):
    """struct plan."""

    _fields_ = _fields("""
        pointer: layers
        int32: count batch
        int64: sample_bytes slots
        pointer: slot_bytes
    """)


def fill(target: ctypes.Structure, owner: list[Array], **values: object) -> None:
    """Set fields of a struct; arrays are passed as pointers to aligned copies, which `owner` keeps alive."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            kept = aligned_copy(value)
            owner.append(kept)
            setattr(target, name, kept.ctypes.data)
        elif value is not None:
            setattr(target, name, value)


def aligned_copy(array: NDArray[T]) -> NDArray[T]:
    """Return a copy that begins at a multiple of ALIGNMENT, so that no vector crosses two lines of the cache."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copy: NDArray[T] = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


SOURCE = Path(__file__).with_name("kernels.c")
FLAGS = (
    *("-std=gnu11", "-O3", "-fPIC", "-shared", "-Wno-psabi"),
    *("-fno-math-errno", "-ffinite-math-only", "-fno-signed-zeros", "-fno-trapping-math"),
    "-ffp-contract=off",
)
"""Nothing that lets the compiler change what an operation gives: maps are proven for IEEE's rounding."""
X86 = ("x86_64", "AMD64", "i386", "i686")
"""Names of machines whose compilers may prefer narrower vectors than there are."""
WITHOUT_DOT = "TFLQ_WITHOUT_DOT"
"""Environment variable: where it is 1, the dot product instruction is not used."""
SECONDS = 120
"""Longest time that a compilation may take."""


class CompilerError(Exception):
    """There is no library; the message contains the reason."""


@dataclass(frozen=True)
class Library:
    """The loaded kernels.

    Attributes:
        lanes: channels in a vector.
        group: Number of products in one factor of dense layers: 4 of bytes, or 1 of floating-point values.
        blocks: vectors of output channels that a dense layer sums at a time.
        blocks_in_fours: the same for outputs in fours.
        taps: neighbors in a row that share one load of their inputs then.
        functions: the library.
    """

    lanes: int
    group: int
    blocks: int
    blocks_in_fours: int
    taps: int
    functions: ctypes.CDLL

    @property
    def multiplies_bytes(self) -> bool:
        """Whether tensors are bytes; else real numbers."""
        return self.group == 4


@cache
def load_library() -> Library:
    """Return the library, compiled if the cache does not contain it.

    Raises:
        CompilerError: no compiler, a build that fails, or no folder to keep the library in.
    """
    compiler = find_compiler()
    flags = [*FLAGS, *for_this_processor(), *(["-DWITHOUT_DOT"] if os.environ.get(WITHOUT_DOT) == "1" else [])]
    key = _key(compiler, flags)
    folder = _cache_folder()
    path = _find(folder, key) or _compile(compiler, flags, folder, key)
    try:
        functions = ctypes.CDLL(str(path))
    except OSError as error:
        raise CompilerError(f"{path} cannot be loaded: {error}") from None
    functions.tflq_run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    functions.tflq_run.restype = None
    if functions.tflq_layer_bytes() != ctypes.sizeof(CLayer) or functions.tflq_plan_bytes() != ctypes.sizeof(CPlan):
        raise CompilerError("the compiler lays out structs in another way than ctypes")
    blocks = functions.tflq_blocks(0), functions.tflq_blocks(1)
    return Library(functions.tflq_lanes(), functions.tflq_group(), *blocks, functions.tflq_taps(), functions)


def kernels_or_none() -> Library | None:
    """Return the library; if there is none, warn and return None."""
    try:
        return load_library()
    except CompilerError as error:
        warnings.warn(f"backend c: {error}; numpy runs instead, with the same results", TflqWarning, stacklevel=2)
        return None


def for_this_processor() -> list[str]:
    """Return the flags for all instructions of this processor, and its widest vectors.

    For many an Intel processor with AVX-512 compilers prefer vectors of 256 bits. Loops over the lanes of one of 512
    then become scalar code: ic took 2.3 times as long (gcc 12).
    """
    widest = ["-mprefer-vector-width=512"] if platform.machine() in X86 else []
    return ["-march=native", *widest]


def find_compiler() -> str:
    """Return the path of the C compiler: the variable CC, or cc, gcc, clang.

    Raises:
        CompilerError: there is none.
    """
    named = os.environ.get("CC")
    for name in [named] if named else ["cc", "gcc", "clang"]:
        path = shutil.which(name)
        if path is not None:
            return path
    what = f"CC={named} is not found" if named else "no C compiler (cc, gcc, clang) is found"
    raise CompilerError(f"{what}; install one, or name it in CC")


def _key(compiler: str, flags: list[str]) -> str:
    """Hash the sources and the compiler's macros, which include its version and the processor's instructions."""
    macros = _ran([compiler, *flags, "-dM", "-E", "-x", "c", os.devnull])
    sources = [SOURCE, *sorted(SOURCE.parent.glob("*.h"))]
    parts = [compiler.encode(), " ".join(flags).encode(), macros, *(path.read_bytes() for path in sources)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def _cache_folder() -> Path:
    """Return the user's folder for libraries, which only the user can enter.

    Raises:
        CompilerError: it cannot be made, or belongs to another user.
    """
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(base).expanduser() / "tflq"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.lstat()
    except OSError as error:
        raise CompilerError(f"{folder} cannot be made: {error.strerror}; name a folder in XDG_CACHE_HOME") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise CompilerError(f"{folder} must be a folder of your own with mode 0700; remove it, or chmod it")
    return folder


def _find(folder: Path, key: str) -> Path | None:
    """Return the library of a key that is the user's own and whole; others are removed."""
    for path in sorted(folder.glob(f"{key}-*.so")):
        with suppress(OSError):
            found = path.lstat()
            own = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
            if own and path.name == _name(key, path.read_bytes()):
                return path
            path.unlink()
    return None


def _compile(compiler: str, flags: list[str], folder: Path, key: str) -> Path:
    descriptor, name = tempfile.mkstemp(prefix=f".{key}.", suffix=".so", dir=folder)
    os.close(descriptor)
    try:
        _ran([compiler, *flags, str(SOURCE), "-o", name])
        path = folder / _name(key, Path(name).read_bytes())
        os.chmod(name, 0o700)
        os.replace(name, path)
    finally:
        with suppress(OSError):
            os.unlink(name)
    return path


def _name(key: str, content: bytes) -> str:
    return f"{key}-{hashlib.sha256(content).hexdigest()[:32]}.so"


def _ran(command: list[str]) -> bytes:
    """Run a command and return its output.

    Raises:
        CompilerError: it fails.
    """
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilerError(f"{command[0]}: {error}") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise CompilerError(f"{command[0]} fails on kernels.c: {lines[0]}")
    return done.stdout
