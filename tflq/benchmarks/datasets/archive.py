"""Archives and folders as names and contents, for .zip, .tar, .tar.gz and folders alike."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tflq.benchmarks.labels import Label
from tflq.errors import InputError
from tflq.files import read_bytes, require_file

_MOST_BYTES = 1 << 30
"""Largest size of one file in an archive."""
Contents = Iterator[tuple[str, bytes]]


def read_names(source: Path) -> list[str]:
    """Return the names of all files, in the order of the archive; sorted for a folder.

    Raises:
        InputError: Neither an archive nor a folder, or a damaged archive.
    """
    return [name for name, _ in _items(source, lambda _: False)]


def read_members(source: Path, is_wanted: Callable[[str], bool]) -> Contents:
    """Yield name and content of the selected files, in the order of `read_names`; errors as for `read_names`."""
    return ((name, data) for name, data in _items(source, is_wanted) if data is not None)


@dataclass(frozen=True)
class Originals:
    """Files of an archive that are converted one to one to files of a data set.

    Attributes:
        kind: Kind of an original, for messages.
        archive: Sources to pass, for messages.
        suffix: Suffix of the data set's files after the key of the original.
        key_of: Function from the name of a member to its key.
        make: Function from (name, content) of the original to the content of the file.
    """

    kind: str
    archive: str
    suffix: str
    key_of: Callable[[str], str]
    make: Callable[[str, bytes], bytes]

    def files(self, sources: Sequence[Path], labels: Sequence[Label]) -> dict[str, bytes]:
        """Return each file of the labels, in their order.

        Raises:
            InputError: An original is missing; errors of `read_members` and `make`.
        """
        wanted = {label.file.removesuffix(self.suffix): label.file for label in labels}
        made: dict[str, bytes] = {}
        for source in sources:
            for name, content in read_members(source, lambda name: self.key_of(name) in wanted):
                made[wanted[self.key_of(name)]] = self.make(name, content)
        missing = [label.file for label in labels if label.file not in made]
        if missing:
            raise InputError(
                f"{sources[0]}: has no {self.kind} for {len(missing)} of {len(labels)} files, the first is "
                f"{missing[0]}; name {self.archive}"
            )
        return {label.file: made[label.file] for label in labels}


def _items(source: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes | None]]:
    if not source.is_dir():
        require_file(source)
    try:
        if source.is_dir():
            yield from _of_folder(source, is_wanted)
        elif zipfile.is_zipfile(source):
            yield from _of_zip(source, is_wanted)
        else:
            yield from _of_tar(source, is_wanted)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{source}: cannot be read as .zip, .tar or .tar.gz: {reason}; name one, or a folder"
        ) from None


def _of_folder(source: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes | None]]:
    for file in sorted(source.rglob("*")):
        if file.is_file():
            name = file.relative_to(source).as_posix()
            yield name, bytes(read_bytes(file)) if is_wanted(name) else None


def _of_zip(source: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes | None]]:
    with zipfile.ZipFile(source) as opened:
        for item in opened.infolist():
            if not item.is_dir():
                _require_small(source, item.filename, item.file_size)
                yield item.filename, opened.read(item) if is_wanted(item.filename) else None


def _of_tar(source: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes | None]]:
    with tarfile.open(source, "r:*") as opened:
        for item in opened:
            if item.isfile():
                _require_small(source, item.name, item.size)
                file = opened.extractfile(item) if is_wanted(item.name) else None
                yield item.name, None if file is None else file.read()


def _require_small(source: Path, name: str, size: int) -> None:
    if size > _MOST_BYTES:
        raise InputError(f"{source}: '{name}' states {size} bytes; the limit for one file is {_MOST_BYTES}")
