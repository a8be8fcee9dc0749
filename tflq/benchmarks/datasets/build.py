"""Build a task's samples from the original archives, for the labels that MLCommons publishes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tflq.benchmarks.datasets import cifar, coco, long_wave, speech_commands, toy_car
from tflq.benchmarks.datasets.published import PublishedSet, fetch_file, no_original
from tflq.benchmarks.fetch import make_folder
from tflq.benchmarks.labels import FILE_NAME, Label, read_labels
from tflq.errors import OutputError
from tflq.files import write_bytes

_BUILDERS: dict[str, Callable[[Sequence[Path], Sequence[Label]], dict[str, bytes]]] = {
    "kws01": speech_commands.build,
    "vww01": coco.ORIGINALS.files,
    "ic01": cifar.build,
    "ad01": toy_car.ORIGINALS.files,
}


def build(data: PublishedSet, sources: Sequence[Path], folder: Path, base_url: str | None = None) -> dict[str, bytes]:
    """Write a task's samples into a folder and return them by name, in the order of the labels.

    The list of samples is the folder's, or is fetched.

    Args:
        data: Data set of the task.
        sources: Original archives, or their folders.
        folder: Output folder; created if missing.
        base_url: URL of a mirror of the labels.

    Raises:
        InputError: No sources, unavailable labels, or sources that are not the originals; no file is written.
        FormatError: The labels have the wrong checksum.
        MissingExtraError: A package that a builder needs is missing.
        OutputError: The folder cannot be written, or contains such a file with other content.
    """
    if not sources:
        raise no_original(data)
    if data.task == "sww01":
        made = long_wave.build(sources, _fetch_list(data, long_wave.SPECIFICATION, folder, base_url))
    else:
        _fetch_list(data, FILE_NAME, folder, base_url)
        made = _BUILDERS[data.task](sources, read_labels(folder))
    make_folder(folder)
    for name, content in made.items():
        if (folder / name).exists() and (folder / name).read_bytes() != content:
            raise OutputError(f"{folder / name}: already exists with other content; move it away; no file was written")
    for name, content in made.items():
        write_bytes(folder / name, content)
    return made


def _fetch_list(data: PublishedSet, name: str, folder: Path, base_url: str | None) -> Path:
    """Return the file that lists the samples: the folder's own, or the published one, fetched."""
    path = folder / name
    if not path.exists():
        (file,) = (one for one in data.files if one.name == name)
        fetch_file(file, folder, base_url)
    return path
