"""Published files of MLPerf Tiny's data sets, and the sources of the originals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tflq.benchmarks.fetch import Outcome, Published, copies, download, fetch, make_folder
from tflq.benchmarks.labels import FILE_NAME, read_labels
from tflq.benchmarks.reference_models import REPOSITORY
from tflq.errors import FormatError, InputError, OptionError
from tflq.files import sha256_of, write_bytes

_CLIPS_URL = "https://raw.githubusercontent.com/eembc/energyrunner/cf7c2f2634608a7c0ea7458ab7cb3379f2863424/datasets"
_CLIP_BYTES = 490


@dataclass(frozen=True)
class PublishedSet:
    """A task's data.

    Attributes:
        task: Name of the task.
        files: Files that MLCommons publishes.
        originals: Archives that the samples are built from.
        home: Source of these archives.
        clips_sha256: SHA-256 of all samples, concatenated, if they are published, too (by EEMBC); else empty.
    """

    task: str
    files: tuple[Published, ...]
    originals: str
    home: str
    clips_sha256: str = ""


def _file(task: str, name: str, folder: str, size_bytes: int | None, checksum: str) -> Published:
    places = (f"datasets/{task}/{name}", f"{task}/{name}")
    return Published(task, name, folder, size_bytes, checksum, places)


def _labels(task: str, size_bytes: int, sha256: str) -> tuple[Published, ...]:
    return (_file(task, FILE_NAME, f"evaluation/datasets/{task}", size_bytes, sha256),)


_STREAMS = "runner/sww_data_dir"
_TRUTH_SHA256 = "0dcaf559213930320cd2ad7143a484b9e82d79b9ea59b7434d3014179f873c1e"
_SPECIFICATION_SHA256 = "729eb5240f7ef611973cbd113ca132081f671516d2d1058de14fe166fe378a73"
SETS = {
    data.task: data
    for data in (
        PublishedSet(
            "kws01",
            _labels("kws01", 27048, "6cb3709762d53fe64eb00eaf4a75796248bb3c1386f1d1f93ccdb07b071e9698"),
            "speech_commands_test_set_v0.02.tar.gz",
            "Speech Commands, https://www.tensorflow.org/datasets/catalog/speech_commands",
            "c2e5f02def82726f5c49dfe85c311c52f295ad68561f6bae89931fdadaaedc73",
        ),
        PublishedSet(
            "vww01",
            _labels("vww01", 21000, "3697ca57c48b23b21602ae9bdb32b1925407a1d41d79167cdfb365054cb9c33d"),
            "val2017.zip",
            "COCO's images, https://cocodataset.org/#download",
        ),
        PublishedSet(
            "ic01",
            _labels("ic01", 5709, "79e1f19ad731f046983a1a4480bda6369df26c5acee47505a860f164fb58ccd4"),
            "cifar-10-python.tar.gz",
            "CIFAR-10, https://www.cs.toronto.edu/~kriz/cifar.html",
        ),
        PublishedSet(
            "ad01",
            _labels("ad01", 13004, "4ecd91868e197ee0a6739d4bd7abde73eac2fa31e9a88d6bc6aedefa136ff2a4"),
            "dev_data_ToyCar.zip",
            "ToyADMOS of DCASE 2020, https://zenodo.org/record/3678171",
        ),
        PublishedSet(
            "sww01",
            (
                _file("sww01", "sww_long_test.json", _STREAMS, 3284, _TRUTH_SHA256),
                _file("sww01", "long_wav.wav", _STREAMS, None, "8af6a23b74e080826eacc84c766e5fc121520a4e"),
                _file("sww01", "long_wav_spec.json", "training/streaming_wakeword", 9523, _SPECIFICATION_SHA256),
            ),
            "speech_commands_v0.02.tar.gz and musan.tar.gz",
            "Speech Commands, https://www.tensorflow.org/datasets/catalog/speech_commands, and MUSAN, "
            "https://www.openslr.org/17",
        ),
    )
}
"""MLPerf Tiny's five sets by task; ic02 has the data of ic01."""


def find_set(task: str) -> PublishedSet:
    """Return a task's data.

    Raises:
        OptionError: The task is unknown.
    """
    if task not in SETS:
        hint = "; ic02 has the data of ic01" if task == "ic02" else ""
        raise OptionError(f"no data set is called '{task}'; available: {', '.join(SETS)}{hint}")
    return SETS[task]


def fetch_file(file: Published, folder: Path, base_url: str | None = None) -> Outcome:
    """Put one file into a folder; errors as for `fetch`."""
    home = f"benchmark/{file.folder} of https://github.com/mlcommons/tiny"
    offline = f"without a network, put {file.name} of {home} into {folder}"
    return fetch(file, folder, base_url or REPOSITORY, offline=offline)


def fetch_clips(data: PublishedSet, folder: Path, base_url: str | None, progress: Callable[[int], object]) -> Outcome:
    """Put the samples that the folder's labels name into it: all of them, with the right checksum, or none.

    Args:
        data: Data set with published clips.
        folder: Folder with the labels.
        base_url: URL of a mirror of EEMBC's folder "datasets".
        progress: Called with 1 for each sample.

    Raises:
        FormatError: The samples are not the published ones.
        InputError: The server cannot be reached or refuses.
        OutputError: The folder cannot be written.
    """
    names = [label.file for label in read_labels(folder)]
    if all((folder / name).is_file() for name in names):
        _require(data, [(folder / name).read_bytes() for name in names], f"{folder}: already exists, but")
        return "already there"
    outcome: Outcome
    for place in copies((f"datasets/{data.task}", data.task)):
        files = [place / name for name in names]
        if all(file.is_file() for file in files):
            clips, outcome, where = [file.read_bytes() for file in files], "copied", str(place)
            break
    else:
        where, outcome = f"{(base_url or _CLIPS_URL).rstrip('/')}/{data.task}", "downloaded"
        offline = f"without a network, put the samples of datasets/{data.task} of EEMBC's energyrunner into {folder}"
        clips = []
        for name in names:
            clips.append(download(f"{where}/{name}", _CLIP_BYTES, offline=offline))
            progress(1)
    _require(data, clips, where)
    make_folder(folder)
    for name, clip in zip(names, clips, strict=True):
        write_bytes(folder / name, clip)
    return outcome


def _require(data: PublishedSet, clips: Sequence[bytes], where: str) -> None:
    digest = sha256_of(b"".join(clips))
    if digest != data.clips_sha256:
        raise FormatError(
            f"{where}: its samples differ from the published samples of {data.task} (SHA-256 of all {digest}, expected "
            f"{data.clips_sha256}); no file was written"
        )


def no_original(data: PublishedSet) -> InputError:
    """Return the error for a missing original, with its source."""
    return InputError(f"{data.task} is built from {data.originals} ({data.home}); name it with --from")
