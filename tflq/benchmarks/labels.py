"""y_labels.csv: class of each file of a data set."""

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
        file: Name of the sample's file, in the same folder.
        classes: Number of classes.
        true_class: True class, 0..classes-1.
        window_bytes: Size of one sample in a file with several, which may overlap; 0 for files of one sample.
        stride_bytes: Distance between the starts of successive windows; 0 for files of one sample.
    """

    file: str
    classes: int
    true_class: int
    window_bytes: int = 0
    stride_bytes: int = 0


def read_labels(folder: Path) -> tuple[Label, ...]:
    """Read the labels of a data set.

    Raises:
        InputError: The folder or y_labels.csv is missing, or a line has another format; the message names the line.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name the folder that contains {FILE_NAME}")
    path = folder / FILE_NAME
    if not path.exists():
        raise InputError(
            f"{folder}: does not contain {FILE_NAME} with the class of each file (docs/guides/mlperf_tiny.md)"
        )
    try:
        lines = bytes(read_bytes(path)).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    labels = tuple(_label(f"{path}: line {n}", line) for n, line in enumerate(lines, 1) if line.strip())
    if not labels:
        raise InputError(f"{path}: names no file")
    counts = sorted({label.classes for label in labels})
    if len(counts) > 1:
        raise InputError(
            f"{path}: its lines state {', '.join(map(str, counts))} classes; all lines must state the same number"
        )
    windows = sorted({(label.window_bytes, label.stride_bytes) for label in labels})
    if len(windows) > 1:
        stated = "; ".join(f"{size} bytes every {stride}" if size else "none" for size, stride in windows)
        raise InputError(f"{path}: its lines state several windows: {stated}; all lines must state the same window")
    return labels


def _label(where: str, line: str) -> Label:
    fields = [field.strip() for field in line.split(",")]
    if len(fields) not in (3, 5) or not fields[0] or not all(f.isdecimal() for f in fields[1:]):
        raise InputError(
            f"{where}: is '{line.strip()}'; allowed is file,classes,class or "
            "file,classes,class,window_bytes,stride_bytes"
        )
    label = Label(fields[0], *map(int, fields[1:]))
    if len(fields) == 5 and not (label.window_bytes and label.stride_bytes):
        raise InputError(f"{where}: windows of {label.window_bytes} bytes every {label.stride_bytes}; both must be > 0")
    if label.true_class >= label.classes:
        raise InputError(f"{where}: class {label.true_class} of {label.classes}; classes are 0..{label.classes - 1}")
    return label
