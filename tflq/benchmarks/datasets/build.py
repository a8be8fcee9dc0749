"""A task's samples made of the original archives, beside the labels that mlcommons publishes."""

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


def build(found: PublishedSet, sources: Sequence[Path], folder: Path, base_url: str | None = None) -> dict[str, bytes]:
    """Write a task's samples into a folder and return them by name, in the order of the labels.

    What says which ones they are is there already, or is fetched.

    Args:
        found: the task's data.
        sources: the original archives, or their folders.
        folder: where to; it is made where it is missing.
        base_url: a mirror of the labels.

    Raises:
        InputError: no sources, labels that cannot be had, or sources that are not the originals; nothing is written.
        FormatError: labels with the wrong checksum.
        MissingExtraError: a package is missing that a builder needs.
        OutputError: the folder cannot be written, or holds such a file with other content.
    """
    if not sources:
        raise no_original(found)
    if found.task == "sww01":
        made = long_wave.build(sources, _listed(found, long_wave.SPECIFICATION, folder, base_url))
    else:
        _listed(found, FILE_NAME, folder, base_url)
        made = _BUILDERS[found.task](sources, read_labels(folder))
    make_folder(folder)
    for name, content in made.items():
        if (folder / name).exists() and (folder / name).read_bytes() != content:
            raise OutputError(
                f"{folder / name}: is there already with other content; move it away; nothing was written"
            )
    for name, content in made.items():
        write_bytes(folder / name, content)
    return made


def _listed(found: PublishedSet, name: str, folder: Path, base_url: str | None) -> Path:
    """Return the file that says what is made: the folder's own, whatever it lists, or the published one, fetched."""
    path = folder / name
    if not path.exists():
        (file,) = (one for one in found.files if one.name == name)
        fetch_file(file, folder, base_url)
    return path
