"""y_labels.csv: which file belongs to which class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tflq.errors import InputError
from tflq.files import read_bytes

FILE_NAME = "y_labels.csv"


@dataclass(frozen=True)
class Label:
    """One line of the file, no header: `file,classes,class`, or `file,classes,class,window_bytes,stride_bytes`.

    Attributes:
        file: name of the sample's file, in the same folder.
        classes: number of classes.
        true_class: the right one, 0..classes-1.
        window_bytes: size of one sample where a file holds several, which may overlap; 0 where it holds one.
        stride_bytes: from the start of one window to that of the next; 0 where a file holds one sample.
    """

    file: str
    classes: int
    true_class: int
    window_bytes: int = 0
    stride_bytes: int = 0


def read_labels(folder: Path) -> tuple[Label, ...]:
    """Read the labels of a data set.

    Raises:
        InputError: no folder, no y_labels.csv, or a line of another form; the message names the line.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name the folder that holds {FILE_NAME}")
    path = folder / FILE_NAME
    if not path.exists():
        raise InputError(f"{folder}: holds no {FILE_NAME}, which names each file's class (docs/guides/mlperf_tiny.md)")
    try:
        lines = bytes(read_bytes(path)).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path}: is no text in UTF-8") from None
    labels = tuple(_label(f"{path}: line {n}", line) for n, line in enumerate(lines, 1) if line.strip())
    if not labels:
        raise InputError(f"{path}: names no file")
    counts = sorted({label.classes for label in labels})
    if len(counts) > 1:
        raise InputError(f"{path}: its lines state {', '.join(map(str, counts))} classes; one number is needed")
    windows = sorted({(label.window_bytes, label.stride_bytes) for label in labels})
    if len(windows) > 1:
        stated = "; ".join(f"{size} bytes every {stride}" if size else "none" for size, stride in windows)
        raise InputError(f"{path}: its lines state several windows: {stated}; the same is needed for all")
    return labels


def _label(where: str, line: str) -> Label:
    fields = [field.strip() for field in line.split(",")]
    if len(fields) not in (3, 5) or not fields[0] or not all(f.isdecimal() for f in fields[1:]):
        raise InputError(
            f"{where}: found '{line.strip()}', allowed is file,classes,class or "
            "file,classes,class,window_bytes,stride_bytes"
        )
    label = Label(fields[0], *map(int, fields[1:]))
    if len(fields) == 5 and not (label.window_bytes and label.stride_bytes):
        raise InputError(f"{where}: windows of {label.window_bytes} bytes every {label.stride_bytes}; both must be > 0")
    if label.true_class >= label.classes:
        raise InputError(f"{where}: class {label.true_class} of {label.classes}; classes are 0..{label.classes - 1}")
    return label
