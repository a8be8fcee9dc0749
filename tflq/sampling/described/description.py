"""Data descriptions: the files, and the conversion of each file to the floating-point values of one sample.

Keys of the JSON object are checked: an unknown or missing key, or one of another type, is reported in one line.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tflq.errors import InputError
from tflq.files import read_bytes


class Keys:
    """The keys of one object of a file.

    Every access names an allowed key; `finish` refuses all other keys.
    """

    def __init__(self, values: Mapping[str, object], where: str) -> None:
        self._values = values
        self.where = where
        self._known: set[str] = set()

    def choice(self, key: str, allowed: Collection[str], default: str | None = None) -> str:
        """Return one of several words."""
        value = self._take(key, default)
        if value not in allowed:
            raise InputError(f"{self.where}: {key} is {value!r}; allowed is {', '.join(map(repr, allowed))}")
        return str(value)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text."""
        value = self._take(key, default)
        if not isinstance(value, str) or not value:
            raise InputError(f"{self.where}: {key} is {value!r}; it must be a text")
        return value

    def whole_number(self, key: str, default: int | None = None, least: int = 1) -> int:
        """Return an integer of at least `least`."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            kind = "a positive integer" if least else "an integer of at least 0"
            raise InputError(f"{self.where}: {key} is {value!r}; it must be {kind}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"{self.where}: {key} is {value!r}; it must be a number")
        return float(value)

    def numbers(self, key: str, default: float, counts: Collection[int]) -> tuple[float, ...]:
        """Return a number, or a list with one of the lengths in `counts`."""
        value = self._take(key, default)
        listed = value if isinstance(value, list) else [value]
        values = tuple(float(v) for v in listed if isinstance(v, (int, float)) and not isinstance(v, bool))
        if len(listed) not in counts or len(values) < len(listed):
            sizes = " or ".join(map(str, sorted(counts)))
            raise InputError(f"{self.where}: {key} is {value!r}; it must be {sizes} numbers")
        return values

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of unique texts; empty if the key is absent."""
        value = self._take(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value) or len(set(value)) < len(value):
            raise InputError(f"{self.where}: {key} is {value!r}; it must be a list of unique texts")
        return tuple(value)

    def sizes(self, key: str) -> tuple[int, int]:
        """Return [height, width]."""
        value = self._take(key, None)
        if not isinstance(value, list) or len(value) != 2 or not all(type(n) is int and n > 0 for n in value):
            raise InputError(f"{self.where}: {key} is {value!r}; it must be [height, width]")
        return value[0], value[1]

    def inner(self, key: str) -> Keys:
        """Return an object inside this one; an absent one has no keys."""
        value = self._take(key, {})
        if not isinstance(value, dict):
            raise InputError(f"{self.where}: {key} is {value!r}; it must be an object")
        return Keys(value, f"{self.where}: {key}")

    def finish(self) -> None:
        """Refuse keys that were not accessed."""
        unknown = [key for key in self._values if key not in self._known]
        if unknown:
            known = ", ".join(sorted(self._known))
            raise InputError(f"{self.where}: unknown key '{unknown[0]}'; allowed are {known}")

    def _take(self, key: str, default: object) -> object:
        self._known.add(key)
        if key not in self._values and default is None:
            raise InputError(f"{self.where}: the key '{key}' is missing")
        return self._values.get(key, default)


IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".gif", ".tif", ".tiff", ".webp")
AUDIO_SUFFIXES = (".wav",)
FOLDERS = "folders"
"""Value of `labels` for files with their folder as class."""
TRUTHS = ("boxes", "masks", "texts")
"""Values of `labels` for labels at the path in the key `truth`."""


@dataclass(frozen=True)
class Images:
    """Conversion of an image to a sample [height, width, channels]: (value - mean) * scale, for values 0..255.

    Attributes:
        size: Height and width.
        crop: "center" for the largest centered part with the aspect ratio of `size`, "none" to stretch the image.
        resample: Filter of Pillow: "nearest", "bilinear", "bicubic", "box", "lanczos".
        channels: Order of channels: "rgb", "bgr" or "gray".
        mean: Subtracted value, for all channels, or one per channel in the order of `channels`.
        scale: Factor, in the same form.
    """

    size: tuple[int, int]
    crop: str
    resample: str
    channels: str
    mean: tuple[float, ...]
    scale: tuple[float, ...]


@dataclass(frozen=True)
class Features:
    """Conversion of sound to a sample.

    Attributes:
        kind: "waveform", "mfcc" or "lfbe".
        window: Number of samples in a frame.
        stride: Number of samples between the starts of successive frames.
        coefficients: Number of coefficients per frame, of the cosine transform or of filter banks.
        mel_bins: Number of filter banks of an mfcc.
        low_hz: Lower edge of the first bank.
        high_hz: Upper edge of the last bank.
    """

    kind: str
    window: int = 0
    stride: int = 0
    coefficients: int = 0
    mel_bins: int = 0
    low_hz: float = 0.0
    high_hz: float = 0.0


@dataclass(frozen=True)
class Audio:
    """Conversion of a WAV file with one channel to a sample.

    Attributes:
        rate: Required sampling rate in samples per second.
        length: Number of samples in a clip; shorter files are padded with silence, longer ones truncated.
        normalize: "peak" to divide by the largest value, as the keyword-spotting reference does; "full-scale".
        features: Features to compute.
    """

    rate: int
    length: int
    normalize: str
    features: Features


@dataclass(frozen=True)
class Truth:
    """Location of labels other than classes.

    Attributes:
        kind: One of TRUTHS.
        path: COCO's file of instances for boxes; the folder with one file per sample for masks and texts.
        root: Folder that file names are relative to.
        blank: Position of the blank token among the model's outputs, for texts; else 0.
    """

    kind: str
    path: Path
    root: Path
    blank: int = 0


@dataclass(frozen=True)
class Description:
    """A data description.

    Attributes:
        path: Path of the description, for messages.
        files: Files in the order of their paths.
        labels: Class of each file by its folder; None without labels.
        classes: Names of the classes in the order of the model's outputs; empty without labels.
        preparation: Conversion of each file.
        truth: Location of labels other than classes; None without such labels.
    """

    path: Path
    files: tuple[Path, ...]
    labels: tuple[int, ...] | None
    classes: tuple[str, ...]
    preparation: Images | Audio
    truth: Truth | None = None

    def first(self, count: int | None) -> Description:
        """Return a description of the first files only; None for all files."""
        labels = None if self.labels is None else self.labels[:count]
        return replace(self, files=self.files[:count], labels=labels)


def read_description(path: Path) -> Description:
    """Read a data description and list its files.

    Raises:
        InputError: Not JSON, an unknown or missing key, a value that is not allowed, or no file; the key is named.
    """
    try:
        content = json.loads(bytes(read_bytes(path)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: does not contain a JSON object")
    keys = Keys(content, str(path))
    kind = keys.choice("kind", ("images", "audio"))
    folder = path.parent / keys.text("files", ".")
    labels = keys.choice("labels", (FOLDERS, *(TRUTHS if kind == "images" else ("texts",)), "none"), "none")
    classes = keys.texts("classes")
    truth = _truth(keys, labels, path.parent, folder, classes) if labels in TRUTHS else None
    preparation = _images(keys) if kind == "images" else _audio(keys)
    keys.finish()
    suffixes = IMAGE_SUFFIXES if kind == "images" else AUDIO_SUFFIXES
    files = _files(path, folder, suffixes)
    if truth is not None:
        return Description(path, files, None, classes, preparation, truth)
    if labels == "none":
        if classes:
            raise InputError(f'{path}: has classes without labels; add "labels": "{FOLDERS}"')
        return Description(path, files, None, (), preparation)
    names = classes or tuple(sorted({file.parent.name for file in files}))
    return Description(path, files, _labels(path, files, names), names, preparation)


def _truth(keys: Keys, labels: str, parent: Path, folder: Path, classes: tuple[str, ...]) -> Truth:
    path, blank = parent / keys.text("truth"), 0
    if labels == "texts":
        if not classes:
            raise InputError(f'{keys.where}: labels are texts; "classes" must name the tokens of the model\'s outputs')
        blank = keys.whole_number("blank", len(classes), least=0)
    elif labels == "masks" and classes:
        raise InputError(f"{keys.where}: labels are masks with numbers as classes; remove the key 'classes'")
    return Truth(labels, path, folder, blank)


def _labels(path: Path, files: tuple[Path, ...], classes: tuple[str, ...]) -> tuple[int, ...]:
    unknown = sorted({file.parent.name for file in files} - set(classes))
    if unknown:
        raise InputError(
            f"{path}: folder '{unknown[0]}' is not one of the classes {', '.join(classes)}; add it, or move its files "
            "away"
        )
    return tuple(classes.index(file.parent.name) for file in files)


def _images(keys: Keys) -> Images:
    channels = keys.choice("channels", ("rgb", "bgr", "gray"), "rgb")
    counts = {1, 1 if channels == "gray" else 3}
    return Images(
        keys.sizes("size"),
        keys.choice("crop", ("center", "none"), "none"),
        keys.choice("resample", ("nearest", "bilinear", "bicubic", "box", "lanczos"), "bilinear"),
        channels,
        keys.numbers("mean", 0.0, counts),
        keys.numbers("scale", 1.0, counts),
    )


def _audio(keys: Keys) -> Audio:
    rate = keys.whole_number("rate", 16000)
    length = keys.whole_number("length", rate)
    old = keys.choice("normalise", ("peak", "full-scale"), "full-scale")  # old spelling, until release 0.3
    normalize = keys.choice("normalize", ("peak", "full-scale"), old)
    inner = keys.inner("features")
    kind = inner.choice("kind", ("waveform", "mfcc", "lfbe"), "waveform")
    features = Features(kind)
    if kind != "waveform":
        features = Features(
            kind,
            inner.whole_number("window", rate * 30 // 1000),
            inner.whole_number("stride", rate * 20 // 1000),
            inner.whole_number("coefficients", 10 if kind == "mfcc" else 40),
            inner.whole_number("mel_bins", 40) if kind == "mfcc" else 0,
            inner.number("low_hz", 20.0 if kind == "mfcc" else 0.0),
            inner.number("high_hz", 4000.0 if kind == "mfcc" else rate / 2),
        )
        _check(features, rate, length, f"{keys.where}: features")
    inner.finish()
    return Audio(rate, length, normalize, features)


def _check(features: Features, rate: int, length: int, where: str) -> None:
    if features.window > length:
        raise InputError(f"{where}: window is {features.window}; a clip has {length} samples")
    if not 0 <= features.low_hz < features.high_hz <= rate / 2:
        raise InputError(
            f"{where}: low_hz is {features.low_hz:g} and high_hz {features.high_hz:g}; "
            f"0 <= low_hz < high_hz <= {rate / 2:g} is required"
        )
    if features.kind == "mfcc" and features.coefficients > features.mel_bins:
        raise InputError(f"{where}: {features.coefficients} coefficients exceed {features.mel_bins} mel_bins")


def _files(path: Path, folder: Path, suffixes: tuple[str, ...]) -> tuple[Path, ...]:
    if not folder.is_dir():
        raise InputError(f"{path}: files: {folder}: the folder does not exist")
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix.lower() in suffixes)
    if not files:
        raise InputError(f"{path}: files: {folder} contains no file that ends in {', '.join(suffixes)}")
    return tuple(files)
