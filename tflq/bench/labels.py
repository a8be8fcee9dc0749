"""y_labels.csv: which file belongs to which class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tflq.errors import InputError
from tflq.files import read_bytes

FILE_NAME = "y_labels.csv"


@dataclass(frozen=True)
class Label:
    """One line of the file: `file,classes,class`, no header.

    Attributes:
        file: name of the sample's file, in the same folder.
        classes: number of classes.
        true_class: the right one, 0..classes-1.
    """

    file: str
    classes: int
    true_class: int


def read_labels(folder: Path) -> tuple[Label, ...]:
    """Read the labels of a data set.

    Raises:
        InputError: no folder, no y_labels.csv, or a line of another form; the message names the line.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name the folder that holds {FILE_NAME}")
    path = folder / FILE_NAME
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
    return labels


def _label(where: str, line: str) -> Label:
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != 3 or not fields[0] or not all(f.isdecimal() for f in fields[1:]):
        raise InputError(f"{where}: found '{line.strip()}', allowed is file,classes,class")
    label = Label(fields[0], int(fields[1]), int(fields[2]))
    if label.true_class >= label.classes:
        raise InputError(f"{where}: class {label.true_class} of {label.classes}; classes are 0..{label.classes - 1}")
    return label
