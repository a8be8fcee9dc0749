"""Arguments of a use case, stored with its result, so that a report page can list them."""

from __future__ import annotations

import inspect
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime, timezone
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeAlias, TypeVar

import numpy as np

from tflq.api.result import Result
from tflq.converters.settings_file import read_settings
from tflq.converters.template import read_template
from tflq.errors import TflqError, command_line
from tflq.files import named_paths, sha256_of, size_of
from tflq.graph import Model
from tflq.interpreter.kernel_files import loaded_kernel_files
from tflq.limits import Limits, current
from tflq.precision.results_file import digest_of
from tflq.report.what_was_run import FileRead, Setting, WhatWasRun
from tflq.sampling.described import read_description

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Bytes: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.generic]] | bytes | bytearray | memoryview"

_WRITTEN = ("folder", "results")
"""Arguments that name output."""
_BESIDE = (".bin",)
"""Endings of files that belong to a model's or a dump's file of the same name."""
_VARIABLES = ("OPENBLAS_", "OMP_", "MKL_")
_PACKAGES = ("numpy", "ai-edge-litert", "tensorflow")


@dataclass(frozen=True)
class RunRecord:
    """One call of a use case.

    Attributes:
        command: Command line, or the call.
        date: Start time.
        arguments: Name, value and default of each argument and of each field of its records.
        in_memory: Arguments in memory, with their digest at the start of the call.
        files: Use, path, and modification time and size at the start of the call.
        limits: Limits in force.
    """

    command: str
    date: str
    arguments: tuple[tuple[str, object, object], ...]
    in_memory: tuple[FileRead, ...]
    files: tuple[tuple[str, Path, tuple[int, int]], ...]
    limits: Limits

    def facts(self) -> WhatWasRun:
        """Return the facts for a report page; files are read for their digests."""
        return WhatWasRun(self.command, self.date, tuple(self._files()), tuple(self._settings()), _environment())

    def _files(self) -> Iterator[FileRead]:
        yield from self.in_memory
        for use, path, stamp in self.files:
            if not path.exists():
                yield FileRead(use, str(path), 0, "unknown", "gone when this page was written")
                continue
            remark = "" if _stamp(path) == stamp else "written again between the run and this page"
            yield FileRead(use, str(path), size_of(path), sha256_of(path), remark)
        for kernels in loaded_kernel_files():
            text = kernels.text.encode()
            yield FileRead("kernels", kernels.path, len(text), sha256_of(text))

    def _settings(self) -> Iterator[Setting]:
        for name, value, default in self.arguments:
            if value != default and value not in self._names:
                yield Setting(name, _text(value), "" if default is _NONE else _text(default))
        yield from self._settings_of_files()
        for field in fields(Limits):
            limit, usual = getattr(self.limits, field.name), field.default
            if limit != usual:
                yield Setting(f"limit {field.name}", str(limit), str(usual))

    @property
    def _names(self) -> set[object]:
        """Names of files that are listed as files."""
        return {name for _, path, _ in self.files for name in (path, str(path))}

    def _settings_of_files(self) -> Iterator[Setting]:
        """Yield the contents of settings files and templates, which precede the options."""
        for name, value, _ in self.arguments:
            if not isinstance(value, str) or name not in (_SETTINGS_FILE, _TEMPLATE):
                continue
            try:
                if name == _SETTINGS_FILE:
                    file = read_settings(value)
                    graph, layers = file.assignments, file.layers
                else:
                    template = read_template(value)
                    graph, layers = template.assignments, template.rules
            except TflqError:  # gone since
                continue
            yield Setting(f"{name} sets, for the graph", _text(graph), "")
            yield Setting(f"{name} sets, for layers", _text(layers), "")


_NONE = object()
_SETTINGS_FILE, _TEMPLATE = "target file", "calibration template"


def record_call(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Record the call of a use case in its result (`Result.run`)."""
    signature = inspect.signature(function)

    @wraps(function)
    def use_case(*arguments: _P.args, **given: _P.kwargs) -> _R:
        bound = signature.bind(*arguments, **given)
        record = _record(function.__name__, signature, bound.arguments)
        result = function(*arguments, **given)
        return replace(result, run=record) if isinstance(result, Result) else result

    return use_case


def _record(name: str, signature: inspect.Signature, given: Mapping[str, object]) -> RunRecord:
    arguments: list[tuple[str, object, object]] = []
    usual = signature.parameters["options"].default if "options" in signature.parameters else _NONE
    for key, parameter in signature.parameters.items():
        default = _NONE if parameter.default is parameter.empty else parameter.default
        if key == "changes":
            extra = given.get(key)
            pairs = extra.items() if isinstance(extra, Mapping) else ()
            arguments += [item for field, value in pairs for item in _flat(field, value, _field(usual, field))]
        elif key != "progress":
            arguments += list(_flat("" if key == "options" else key, given.get(key, default), default))
    in_memory = tuple(value for _, value, _ in arguments if isinstance(value, FileRead))
    arguments = [item for item in arguments if not isinstance(item[1], FileRead)]
    read = ((use, path) for use, value, _ in arguments if use not in _WRITTEN for path in _read_with(value))
    files = tuple((use, path, _stamp(path)) for use, path in read)
    command = command_line.get() or f"tflq.{name}(...) in Python"
    return RunRecord(command, _now(), tuple(arguments), in_memory, files, current())


def _flat(name: str, value: object, default: object) -> Iterator[tuple[str, object, object]]:
    """Yield the arguments in a value: the fields of a record of options one by one, arrays and models by digest."""
    if isinstance(value, Model):
        size = sum(t.data.nbytes for t in value.main.tensors if isinstance(t.data, np.ndarray))
        yield name, FileRead(name, f"{value.source or 'made'}, a model in memory", size, digest_of(value)), default
    elif is_dataclass(value) and not isinstance(value, type):
        usual = default if type(default) is type(value) else _default_of(type(value))
        for field in fields(value):
            yield from _flat(f"{name} {field.name}".strip(), getattr(value, field.name), _field(usual, field.name))
    elif isinstance(value, (np.ndarray, bytes, bytearray, memoryview)):
        yield name, _array(name, value), default
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(f"{name} {key}".strip(), item, _NONE)
    elif isinstance(value, list) and any(isinstance(item, np.ndarray) for item in value):
        for item in value:
            yield from _flat(name, item, _NONE)
    else:
        yield name, value, default


def _default_of(kind: type) -> object:
    """Return a record with its defaults; a placeholder for a record with required fields."""
    try:
        return kind()
    except TypeError:
        return _NONE


def _field(record: object, name: str) -> object:
    return getattr(record, name, _NONE)


def _array(use: str, value: _Bytes) -> FileRead:
    if isinstance(value, np.ndarray):
        return FileRead(use, f"array {value.dtype}{list(value.shape)}", value.nbytes, digest_of(value))
    return FileRead(use, "bytes in memory", len(value), sha256_of(bytes(value)))


def _read_with(value: object) -> Iterator[Path]:
    """Yield the files and folders that a value names, and the files that belong to them."""
    for path in named_paths(value):
        yield path
        if path.suffix.lower() in (".xml", ".txt"):
            yield from (beside for end in _BESIDE if (beside := path.with_suffix(end)).is_file())
        if path.suffix.lower() == ".json" and path.is_file():
            try:
                files = read_description(path).files
            except TflqError:  # another kind of JSON
                continue
            yield Path(os.path.commonpath([file.parent for file in files]))


def _stamp(path: Path) -> tuple[int, int]:
    """Return when a file, or the last file of a folder, was written, and how long it is."""
    try:
        stats = [item.stat() for item in ([path] if path.is_file() else path.rglob("*"))]
    except OSError:
        return (0, 0)
    return max((s.st_mtime_ns for s in stats), default=0), sum(s.st_size for s in stats)


def _text(value: object) -> str:
    """Write a value as a person types it."""
    if value is None or value == ():
        return "none"
    if isinstance(value, (tuple, list)):
        return " ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if isinstance(value, (str, int, os.PathLike)) else type(value).__name__


def _now() -> str:
    """Return the current time, or the time of SOURCE_DATE_EPOCH, which reproducible builds set."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch), timezone.utc) if epoch.isdecimal() else datetime.now().astimezone()
    return now.isoformat(timespec="seconds")


def _environment() -> Sequence[tuple[str, str]]:
    from importlib.metadata import PackageNotFoundError, version

    system = f"{platform.system()} {platform.machine()}"
    facts = [("Python", platform.python_version()), ("system", system), ("processor", _processor())]
    facts.append(("cores", str(os.cpu_count())))
    for package in _PACKAGES:
        try:
            facts.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return (*facts, *((k, v) for k, v in sorted(os.environ.items()) if k.startswith(_VARIABLES)))


def _processor() -> str:
    """Return the processor's name, or its architecture if the name is unknown."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
