"""The files of a dump: archives, arrays, raw bytes, memory images with their maps, and numbers in text.

Dumps of NNTool: tensor/<node>, tensor/<fusion>//<member>, const/<name>, and the graph's input and output.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from tflq.diagnosis.dumps.wanted import TYPES, Archive, Stored
from tflq.errors import InputError
from tflq.files import read_bytes
from tflq.graph import Array
from tflq.sampling.files import read_npy, read_npz

_NUMBER = r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|nan|inf)"
_ROW = re.compile(rf"^[\s,;{{}}\[\]()]*(?:{_NUMBER}[uUlLfF]*[\s,;{{}}\[\]()]*)+$")
_TOKEN = re.compile(_NUMBER)
_BRACKETED = re.compile(r"^\s*\[\s*(\d+)\s*\]\s*(?!\s*[-+\d,])(.*)$")
_SAMPLE_OF_BLOCK = re.compile(r"(?:sample|image|frame)\s*[:#_]?\s*(\d+)", re.IGNORECASE)
_DECLARATION = re.compile(r"(u?int(?:8|16|32|64)_t|float|double|(?:un)?signed char)\s+(\w+)\s*\[[^]]*\]\s*=")
_NAME = re.compile(r"[A-Za-z_][\w/;:.]*\w")
_C_TYPES = {"float": "float32", "double": "float64", "signed char": "int8", "unsigned char": "uint8"}
WORD_STEP = 1 / 4096
"""NNIE's words are 20.12 fixed point."""


@dataclass
class _Block:
    """Numbers between two headings."""

    name: str = ""
    alias: str = ""
    dtype: str = ""
    sample: int | None = None
    tokens: list[str] = field(default_factory=list)


def read_words(path: str, content: str, name: str) -> Stored:
    """Read hexadecimal 32-bit words, one a line: two's complement, value / 4096, planar (docs/targets/nnie.md).

    Raises:
        InputError: a line that is no word.
    """
    lines = content.split()
    try:
        words = np.array([int(line, 16) for line in lines], np.uint64)
    except ValueError:
        bad = next(line for line in lines if not re.fullmatch(r"(0[xX])?[0-9a-fA-F]+", line))
        raise InputError(f"{path}: '{bad[:20]}' is no hexadecimal word; each line needs one word of 32 bits") from None
    if not words.size or words.max() > 0xFFFFFFFF:
        raise InputError(f"{path}: contains no hexadecimal words of 32 bits")
    real = words.astype(np.uint32).view(np.int32).astype(np.float64) * WORD_STEP
    return Stored(name, real, is_flat=True, channels_first=True, step=WORD_STEP)


def read_table(path: str, content: str, name: str) -> Stored:
    """Read rows of numbers, one sample a row.

    Raises:
        InputError: rows of different lengths, or no numbers.
    """
    rows = [_TOKEN.findall(line) for line in content.splitlines() if _ROW.match(line)]
    if not rows or len({len(row) for row in rows}) > 1:
        problem = "rows of different lengths" if rows else "no numbers"
        raise InputError(f"{path}: has {problem}; a table needs one sample in each row")
    return Stored(name, np.stack([_numbers(row) for row in rows]), is_flat=True)


def read_blocks(path: str, content: str, name: str) -> list[Stored]:
    """Read the blocks of numbers of a log or C file; headings name them.

    A heading is a line with words: "[4] CONV_2D ..." is number 4, "static const int8_t conv_4[n] = {" is conv_4;
    "sample 1" in a heading applies to the blocks after it, and the words of a comment are a block's second name.

    Raises:
        InputError: no numbers.
    """
    blocks = [_Block()]
    for line in content.splitlines():
        if _ROW.match(line) and not re.fullmatch(r"\s*\[\s*\d+\s*\]\s*", line):
            blocks[-1].tokens += _TOKEN.findall(line)
        elif re.search(r"\w", line):
            if blocks[-1].tokens:
                blocks.append(_Block(sample=blocks[-1].sample))
            _heading(blocks[-1], line)
    arrays = [
        Stored(
            b.name or b.alias or name,
            _typed(b),
            b.alias if b.name else "",
            is_raw=not b.dtype and _is_bytes(b.tokens),
            is_flat=True,
            may_be_short=True,
            sample=b.sample,
        )
        for b in blocks
        if b.tokens
    ]
    if not arrays:
        raise InputError(f"{path}: contains no numbers")
    return arrays


def _heading(block: _Block, line: str) -> None:
    sample = _SAMPLE_OF_BLOCK.search(line)
    if sample is not None:
        block.sample = int(sample.group(1))
    declared = _DECLARATION.search(line)
    if declared is not None:
        kind = declared.group(1)
        block.dtype, block.name = _C_TYPES.get(kind, kind.removesuffix("_t")), declared.group(2)
        rest = line[declared.end() :]
        block.tokens += _TOKEN.findall(rest) if _ROW.match(rest.strip(" {};") or "x") else []
        return
    numbered = _BRACKETED.match(line)
    if numbered is not None:
        block.name = numbered.group(1)
        return
    named = _NAME.search(line if sample is None else line[: sample.start()])
    if named is not None and not block.alias:
        block.alias = named.group(0)


def _is_bytes(tokens: list[str]) -> bool:
    return all(t[:2] in ("0x", "0X") and len(t) <= 4 for t in tokens)


def _typed(block: _Block) -> Array:
    if block.dtype:
        wide = _numbers(block.tokens)
        return wide.astype(block.dtype) if wide.dtype.kind == "f" else wide.astype(np.int64).astype(block.dtype)
    if _is_bytes(block.tokens):
        return np.array([int(t, 16) for t in block.tokens], np.uint8)
    return _numbers(block.tokens)


def _numbers(tokens: list[str]) -> Array:
    """Return int64[n] if all are written as integers, else float64[n]."""
    try:
        return np.array([int(t, 0) if t[:2] in ("0x", "0X") else int(t) for t in tokens], np.int64)
    except (ValueError, OverflowError):
        return np.array([float(t) for t in tokens], np.float64)


_KEY = re.compile(r"(tensor|const|symbol)/.+|(input|output_q)(#\d+)?")
_TENSOR = "tensor/"


def node_names(arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the tensors of a dump of NNTool by node, a fusion's by its members; any other archive unchanged.

    The output of a fusion is stored twice, under the fusion's name and its last member's; the member's is kept.
    Constants, nodes with several outputs and all entries that are no tensors are omitted.
    """
    if not any(name.startswith(_TENSOR) for name in arrays) or not all(_KEY.fullmatch(name) for name in arrays):
        return arrays
    tensors = {name.removeprefix(_TENSOR): array for name, array in arrays.items() if name.startswith(_TENSOR)}
    fusions = {name.partition("//")[0] for name in tensors if "//" in name}
    several = {name.partition("#")[0] for name in tensors if "#" in name}
    kept = {n: array for n, array in tensors.items() if n not in fusions and n.partition("#")[0] not in several}
    return {name.rpartition("//")[2]: array for name, array in kept.items()}


MAP = '{"sample_bytes": N, "tensors": {NAME: {"offset": N, "dtype": "int8", "shape": [...]}}}'

_Entry = tuple[int, np.dtype[np.generic], tuple[int, ...]]


def is_map(path: Path) -> bool:
    """Whether a file is a map."""
    if not path.is_file():
        return False
    try:
        _read_map(str(path))
    except InputError:
        return False
    return True


def read_mapped(path: str | os.PathLike[str], map_path: str) -> dict[str, Array]:
    """Read the tensors of a memory image: dtype[S, *shape] by name.

    Raises:
        InputError: a map that is none, or that does not fit the bytes.
    """
    content = np.frombuffer(bytes(read_bytes(path)), np.uint8)
    sample_bytes, entries = _read_map(map_path)
    stride = content.size if sample_bytes is None else sample_bytes
    if stride < 1 or content.size % stride or not content.size:
        raise InputError(f"{path}: has {content.size} bytes, which is no multiple of the {stride} bytes of one sample")
    rows = content.reshape(-1, stride)
    arrays: dict[str, Array] = {}
    for name, (offset, dtype, shape) in entries.items():
        end = offset + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        if end > stride:
            raise InputError(f"{map_path}: '{name}' ends at byte {end}, a sample of {path} has {stride} bytes")
        arrays[name] = np.ascontiguousarray(rows[:, offset:end]).view(dtype).reshape(len(rows), *shape)
    return arrays


def _read_map(path: str) -> tuple[int | None, dict[str, _Entry]]:
    try:
        content = json.loads(bytes(read_bytes(path)))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path}: is no JSON: {error}") from None
    tensors = content.get("tensors") if isinstance(content, dict) else None
    stride = content.get("sample_bytes") if isinstance(content, dict) else None
    if not isinstance(tensors, dict) or not tensors or not (stride is None or _is_size(stride)):
        raise InputError(f"{path}: is no map of a dump; it needs {MAP}")
    return stride, {name: _entry(path, name, entry) for name, entry in tensors.items()}


def _entry(path: str, name: str, entry: object) -> _Entry:
    values = entry if isinstance(entry, dict) else {}
    offset, dtype, shape = values.get("offset"), values.get("dtype"), values.get("shape")
    if not _is_size(offset) or dtype not in TYPES or not isinstance(shape, list) or not all(map(_is_size, shape)):
        raise InputError(
            f"{path}: '{name}' needs an offset in bytes, a shape and a dtype of {', '.join(TYPES)}; found {entry!r}"
        )
    return int(str(offset)), np.dtype(str(dtype)).newbyteorder("<"), tuple(int(n) for n in shape)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_TYPED = {".u8": "uint8", ".s8": "int8", ".i8": "int8", ".f32": "float32"}
_RAW = (".bin", ".raw", ".dat", *_TYPED)
_TEXT = (".txt", ".csv", ".hex", ".log", ".h", ".c", ".float")
SUFFIXES = (".npz", ".npy", *_RAW, *_TEXT)
"""How the names of a dump's files end; a folder of them is a dump, too."""
_SAMPLE = re.compile(r"(?:(?<=[^A-Za-z])|^)(?:sample|image|img|frame)[_-]?(\d+)[_.-]?", re.IGNORECASE)


def read_archive(
    path: str | os.PathLike[str], name: str | None = None, map_path: str | None = None, dtype: str | None = None
) -> Archive:
    """Read the arrays of a dump, unchanged.

    Args:
        path: a file with a suffix in `SUFFIXES`, or a folder of such files.
        name: Name of the tensor if the file contains one array.
        map_path: JSON with the places of the tensors in raw bytes; a map.json next to the file is used, too.
        dtype: Type of raw bytes.

    Raises:
        InputError: files that cannot be read, or no array in them.
    """
    place = Path(path)
    if place.is_dir():
        archive = _folder(place, map_path, dtype)
    elif place.suffix.lower() in SUFFIXES:
        archive = _file(place, map_path, dtype)
        lone = place.suffix.lower() in (".npy", *_RAW) and len(archive.arrays) == 1 and archive.is_unnamed
        if name is not None and len(archive.arrays) == 1:
            archive = replace(archive, arrays=(replace(archive.arrays[0], name=name),), is_unnamed=False)
        elif not lone:
            archive = replace(archive, is_unnamed=False)
    else:
        raise InputError(f"{path}: no dump ends in '{place.suffix}'; allowed are {', '.join(SUFFIXES)}, or a folder")
    numbers = [a for a in archive.arrays if a.array.dtype.kind in "biuf"]
    others = [a.name for a in archive.arrays if a.array.dtype.kind not in "biuf"]
    notes = (*archive.notes, *([f"passed over, no numbers: {', '.join(others)}"] if others else ()))
    if not numbers:
        raise InputError(f"{path}: contains no array of numbers")
    return Archive(str(path), tuple(_stacked(str(path), numbers)), notes, archive.is_unnamed)


def _folder(place: Path, map_path: str | None, dtype: str | None) -> Archive:
    files = sorted((p for p in place.iterdir() if p.is_file()), key=lambda p: _natural(p.name))
    kept = [p for p in files if p.suffix.lower() in SUFFIXES]
    maps = [p for p in files if p.suffix.lower() == ".json" and is_map(p)]
    others = [p.name for p in files if p not in kept and p not in maps]
    if not kept:
        raise InputError(f"{place}: contains no dump; no file ends in {', '.join(SUFFIXES)}")
    arrays: list[Stored] = []
    notes = [f"passed over: {', '.join(others)}"] if others else []
    for p in kept:
        own = _file(p, map_path or (str(maps[0]) if maps and p.suffix.lower() in _RAW else None), dtype)
        arrays += own.arrays
        notes += own.notes
    return Archive(str(place), tuple(arrays), tuple(notes))


def _file(place: Path, map_path: str | None, dtype: str | None) -> Archive:
    kind, stem = place.suffix.lower(), place.name[: -len(place.suffix)]
    if kind == ".npz":
        return Archive(str(place), tuple(Stored(key, array) for key, array in node_names(read_npz(place)).items()))
    if kind == ".npy":
        return Archive(str(place), (Stored(stem, read_npy(place)),), is_unnamed=True)
    if kind in _RAW:
        return _raw(place, stem, map_path, dtype or _TYPED.get(kind))
    content = bytes(read_bytes(place)).decode("utf-8", "replace")
    if kind == ".hex":
        return Archive(str(place), (read_words(str(place), content, stem),))
    if kind == ".csv":
        return Archive(str(place), (read_table(str(place), content, stem),))
    blocks = read_blocks(str(place), content, stem)
    if kind == ".float" or ".linear" in stem:
        blocks = [replace(b, channels_first=True, may_be_short=False) for b in blocks]
    return Archive(str(place), tuple(blocks))


def _raw(place: Path, stem: str, map_path: str | None, dtype: str | None) -> Archive:
    beside = place.parent / "map.json"
    if map_path is None and is_map(beside):
        map_path = str(beside)
    if map_path is not None:
        arrays = read_mapped(place, map_path)
        return Archive(str(place), tuple(Stored(k, a) for k, a in arrays.items()), (f"cut as {map_path} says",))
    content = np.frombuffer(bytes(read_bytes(place)), np.uint8)
    if dtype is None:
        return Archive(str(place), (Stored(stem, content, is_raw=True, is_flat=True),), is_unnamed=True)
    if content.size % np.dtype(dtype).itemsize:
        raise InputError(f"{place}: {content.size} bytes are no multiple of the size of {dtype}")
    return Archive(str(place), (Stored(stem, content.view(dtype), is_flat=True),), is_unnamed=True)


def _stacked(path: str, arrays: Sequence[Stored]) -> list[Stored]:
    """Join arrays of one name that are of one sample each, by a heading or a name as sample0_layer3."""
    named = []
    for a in arrays:
        numbered = _SAMPLE.search(a.name)
        if a.sample is None and numbered is not None and len(arrays) > 1:
            rest = a.name[: numbered.start()] + a.name[numbered.end() :]
            a = replace(a, name=rest or a.name, sample=int(numbered.group(1)))
        named.append(a)
    order = {name: i for i, name in reversed(list(enumerate(a.name for a in named)))}
    result = []
    for name, group in groupby(sorted(named, key=lambda a: order[a.name]), key=lambda a: a.name):
        parts = sorted(group, key=lambda a: -1 if a.sample is None else a.sample)
        if len(parts) == 1:
            result.append(replace(parts[0], sample=None) if parts[0].sample in (None, 0) else parts[0])
            continue
        numbers = [p.sample for p in parts]
        if None in numbers or len({p.array.shape for p in parts}) > 1 or numbers != list(range(len(parts))):
            found_words = ", ".join("?" if n is None else str(n) for n in numbers)
            raise InputError(
                f"{path}: '{name}' occurs {len(parts)} times, for the samples {found_words}; each array needs a unique "
                f"name, or one for each sample, counted from 0, of one shape"
            )
        result.append(replace(parts[0], array=np.stack([p.array for p in parts]), sample=None))
    return result


def _natural(name: str) -> list[tuple[int, int, str]]:
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"(\d+)", name)]
