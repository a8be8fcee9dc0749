"""Data sets made of the original archives: the files of mlcommons' scripts, on small archives of our own."""

from __future__ import annotations

import io
import json
import os
import pickle
import tarfile
import zipfile
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.typing import NDArray

from tests.support.data import data_path
from tflq.benchmarks.datasets import cifar, coco, long_wave, speech_commands, toy_car
from tflq.benchmarks.datasets.build import build
from tflq.benchmarks.datasets.published import SETS, fetch_clips
from tflq.benchmarks.labels import Label, read_labels
from tflq.errors import FormatError, InputError, OutputError

wavfile = pytest.importorskip("scipy.io.wavfile", reason="scipy is not installed: it comes with tflq[audio]")
RATE = 16_000


def wave(samples: NDArray[np.int16]) -> bytes:
    buffer = io.BytesIO()
    wavfile.write(buffer, RATE, samples)
    return buffer.getvalue()


def noise(seed: int, seconds: float, level: float = 3000) -> NDArray[np.int16]:
    values = default_rng(seed).normal(size=int(seconds * RATE)) * level
    return values.clip(-32768, 32767).astype(np.int16)


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def batch(tmp_path: Path) -> tuple[Path, NDArray[np.uint8]]:
    """A folder as cifar-10-python.tar.gz holds it."""
    pixels = default_rng(3).integers(0, 256, (30, 3072), dtype=np.uint8)
    names = [f"car_s_{n:06d}.png".encode() for n in range(30)]
    content = {b"labels": [n % 10 for n in range(30)], b"data": pixels, b"filenames": names}
    folder = tmp_path / "cifar-10-batches-py"
    for protocol, name in ((2, "test_batch"), (4, "other_batch")):
        put(folder / name, pickle.dumps(content, protocol=protocol))
    return folder, pixels


def archives(folder: Path) -> list[Path]:
    """The folder, and the same as .zip and .tar.gz."""
    packed = folder.with_suffix(".zip")
    with zipfile.ZipFile(packed, "w") as opened:
        for file in sorted(folder.rglob("*")):
            opened.write(file, file.relative_to(folder.parent))
    tarred = folder.with_suffix(".tar.gz")
    with tarfile.open(tarred, "w:gz") as written:
        written.add(folder, folder.name)
    return [folder, packed, tarred]


def test_cifar_images_are_pixel_by_pixel(batch: tuple[Path, NDArray[np.uint8]]) -> None:
    folder, pixels = batch
    labels = [Label("car_s_000007.bin", 10, 7), Label("car_s_000021.bin", 10, 1)]
    for source in archives(folder):
        made = cifar.build([source], labels)
        assert list(made) == [label.file for label in labels]
        for label, n in zip(labels, (7, 21), strict=True):
            red, green, blue = pixels[n].reshape(3, 1024)
            assert made[label.file] == np.stack([red, green, blue], axis=1).tobytes()


def test_batches_of_every_protocol(batch: tuple[Path, NDArray[np.uint8]]) -> None:
    folder, pixels = batch
    (folder / "other_batch").replace(folder / "test_batch")
    made = cifar.build([folder], [Label("car_s_000007.bin", 10, 7)])
    assert made["car_s_000007.bin"][:3] == bytes(pixels[7][[0, 1024, 2048]])


class Malicious:
    def __reduce__(self) -> object:
        return os.mkdir, ("was-run",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (pickle.dumps({b"filenames": Malicious()}), "is not CIFAR-10's Python version"),
        (b"no pickle", "is not CIFAR-10's Python version"),
        (pickle.dumps([1]), "list instead of dict"),
        (pickle.dumps({b"filenames": [b"a.png"], b"labels": [1, 2], b"data": b"0" * 3072}), "1 names, 2 labels"),
    ],
)
def test_other_batches_are_refused_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "c" / "test_batch", content)
    with pytest.raises(InputError, match=words):
        cifar.build([tmp_path / "c"], [Label("a.bin", 10, 1)])
    assert not (tmp_path / "was-run").exists()


def test_images_that_are_missing_or_of_another_class(batch: tuple[Path, NDArray[np.uint8]]) -> None:
    with pytest.raises(InputError, match=r"test_batch has no image for dog\.bin"):
        cifar.build([batch[0]], [Label("dog.bin", 10, 1)])
    with pytest.raises(InputError, match="is of class 7, not 1"):
        cifar.build([batch[0]], [Label("car_s_000007.bin", 10, 1)])


@pytest.mark.parametrize("count", [3, 64, 250, 1000])
def test_clips_come_in_the_order_of_tensorflow_datasets(count: int) -> None:
    names = [f"word{n % 7}/{n:05d}_nohash_0.wav" for n in range(count)]
    ordered = sorted(names, key=speech_commands.digest)
    files = [iter(ordered[round(count * n / 4) : round(count * (n + 1) / 4)]) for n in range(4)]
    expected: list[str] = []
    while len(expected) < count:  # tf.data's interleave: a block of 16 of each file in turn
        for file in files:
            expected += islice(file, 16)
    assert speech_commands.clip_order(names) == expected


def test_keyword_clips_and_silence(tmp_path: Path) -> None:
    classes = {"_silence_": 10, "go": 1, "_unknown_": 11, "left": 2}
    for n, word in enumerate(classes):
        put(
            tmp_path / "s" / word / f"{n}.wav", wave(noise(n, 0.5 + 0.1 * n) if word != "_silence_" else noise(0, 1, 0))
        )
    names = speech_commands.clip_order([f"{word}/{n}.wav" for n, word in enumerate(classes)])
    labels = [Label(f"tst_{n}.bin", 12, classes[name.split("/")[0]]) for n, name in enumerate(names)]
    made = speech_commands.build([tmp_path / "s"], labels)
    assert [len(content) for content in made.values()] == [490] * 4
    silent = np.frombuffer(made[labels[[label.true_class for label in labels].index(10)].file], np.int8).reshape(49, 10)
    assert (silent == (-128, 82, 83, 83, 83, 82, 83, 83, 83, 83)).all()
    wrong = [Label(label.file, 12, 0) for label in labels]
    with pytest.raises(
        InputError, match=r"is not the test set of Speech Commands v0\.02: 4 of 4 clips, the classes of 0"
    ):
        speech_commands.build([tmp_path / "s"], wrong)


def test_spectrograms_are_librosas() -> None:
    sound = noise(5, 10).astype(np.float32) / 32768
    found = toy_car.spectrogram(sound)
    frame = sound[60 * 512 - 512 : 60 * 512 + 512] * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024))
    power = np.abs(np.fft.rfft(frame)) ** 2
    assert found.shape == (200, 128)
    assert found[10] == pytest.approx(
        10 * np.log10(toy_car.mel_filters().astype(np.float64) @ power + 2**-52), abs=1e-4
    )
    librosa = pytest.importorskip("librosa", reason="librosa is not installed: mlcommons' script makes ad01 with it")
    mel = librosa.feature.melspectrogram(y=sound, sr=RATE, n_fft=1024, hop_length=512, n_mels=128, power=2.0)
    assert (found == (10 * np.log10(mel + np.finfo(float).eps))[:, 50:250].T).all()


def test_images_shrink_as_scikit_image_has_it() -> None:
    same = default_rng(4).integers(0, 256, (96, 96, 3), dtype=np.uint8)
    assert (coco.shrunk(same) == (255 * (same * (1 / 255))).astype(np.uint8)).all()
    image = default_rng(6).integers(0, 256, (427, 640, 3), dtype=np.uint8)
    transform = pytest.importorskip(
        "skimage.transform", reason="scikit-image is not installed: it shrinks vww01's images"
    )
    assert (coco.shrunk(image) == (255 * transform.resize(image, (96, 96), anti_aliasing=True)).astype(np.uint8)).all()


def test_missing_images_and_recordings_are_one_line(tmp_path: Path) -> None:
    labels = [Label(f"{n:012d}.bin", 2, 1) for n in range(248)]
    put(tmp_path / "other.txt", b"x")
    with pytest.raises(
        InputError, match=r"no image for 248 of 248 files, the first is 000000000000\.bin; name val2017\.zip"
    ):
        coco.ORIGINALS.files([tmp_path], labels)
    with pytest.raises(
        InputError, match=r"no recording for 248 of 248 files, the first is 0+\.bin; name dev_data_ToyCar"
    ):
        toy_car.ORIGINALS.files([tmp_path], labels)
    put(tmp_path / "text.zip", b"no archive")
    with pytest.raises(InputError, match=r"cannot be read as \.zip, \.tar or \.tar\.gz: .*; name one, or a folder"):
        coco.ORIGINALS.files([tmp_path / "text.zip"], labels)


def specification(tmp_path: Path, **changes: object) -> Path:
    content = {
        "configs_background": [["{musan_path}/music/a.wav", 0.5, 2.5, 0.1]],
        "configs_wakeword": [["{speech_commands_path}/marvin/b_nohash_0.wav", 1.0, 0.7]],
        "length_sec": 4.0,
        **changes,
    }
    return put(tmp_path / "spec.json", json.dumps(content).encode())


def test_streams_are_mixed_as_build_long_wav_does(tmp_path: Path) -> None:
    word = np.concatenate([np.zeros(1600, np.int16), noise(7, 0.5, 900), np.zeros(4000, np.int16)])
    put(tmp_path / "musan" / "music" / "a.wav", wave(noise(8, 3)))
    put(tmp_path / "sc" / "marvin" / "b_nohash_0.wav", wave(word))
    made = long_wave.build([tmp_path / "sc", tmp_path / "musan"], specification(tmp_path))
    rate, found = wavfile.read(io.BytesIO(made["long_wav.wav"]))
    loud = np.flatnonzero(word > word.max() * 0.05)
    cut = word[loud[0] : loud[-1]]
    sound = np.zeros(4 * RATE, np.float32)
    sound[8000:40000] += 0.1 * (noise(8, 3)[:32000] / np.std(noise(8, 3)[:32000]))
    sound[RATE : RATE + cut.size] += 0.7 * (cut / np.std(cut))
    expected = (sound / np.abs(sound).max() * np.float32(2**15)).astype(np.int32).astype(np.int16)
    assert (rate, found.dtype) == (RATE, np.int16)
    assert (found == expected[:, None]).all()
    (truth,) = json.loads(made["sww_long_test.json"])
    assert truth["detection_windows"] == [[1.0, 1.0 + cut.size / RATE]]
    assert (truth["wav_file"], truth["length_sec"]) == ("long_wav.wav", 4.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"length_sec": 1e9}, "which is at most a day"),
        (
            {"configs_background": [["{musan_path}/music/a.wav", 0.5, 4.0, 0.1]]},
            "music/a.wav has 3 s, it needs 3.5 s",
        ),
        (
            {"configs_wakeword": [["{speech_commands_path}/marvin/b_nohash_0.wav", 3.9, 1]]},
            "ends after the recording's 4 s",
        ),
        (
            {"configs_wakeword": [["{speech_commands_path}/marvin/c.wav", 1, 1]]},
            "1 recordings are missing, the first is",
        ),
        ({"configs_wakeword": 3}, "is not a schedule of sounds"),
    ],
)
def test_streams_that_cannot_be_made(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    put(tmp_path / "musan" / "music" / "a.wav", wave(noise(8, 3)))
    put(tmp_path / "sc" / "marvin" / "b_nohash_0.wav", wave(noise(7, 0.5)))
    with pytest.raises(InputError, match=words):
        long_wave.build([tmp_path / "sc", tmp_path / "musan"], specification(tmp_path, **changes))


def test_labels_of_the_folder_and_files_that_are_there(batch: tuple[Path, NDArray[np.uint8]], tmp_path: Path) -> None:
    place = tmp_path / "ic01"
    put(place / "y_labels.csv", b"car_s_000007.bin,10,7\n")
    made = build(SETS["ic01"], [batch[0]], place)
    assert made == {"car_s_000007.bin": (place / "car_s_000007.bin").read_bytes()}
    assert len(made["car_s_000007.bin"]) == 3072
    assert build(SETS["ic01"], [batch[0]], place) == made
    put(place / "car_s_000007.bin", b"mine")
    with pytest.raises(OutputError, match="already exists with other content; move it away; no file was written"):
        build(SETS["ic01"], [batch[0]], place)


def test_published_clips_are_copied_whole_or_not_at_all(tmp_path: Path) -> None:
    source = data_path("datasets", "kws01")
    put(tmp_path / "kws01" / "y_labels.csv", (source / "y_labels.csv").read_bytes())
    counts: list[int] = []
    assert fetch_clips(SETS["kws01"], tmp_path / "kws01", None, counts.append) == "copied"
    assert len(list((tmp_path / "kws01").glob("*.bin"))) == 1000
    assert fetch_clips(SETS["kws01"], tmp_path / "kws01", None, counts.append) == "already there"
    put(tmp_path / "kws01" / read_labels(source)[5].file, bytes(490))
    with pytest.raises(
        FormatError, match="already exists, but: its samples differ from the published samples of kws01"
    ):
        fetch_clips(SETS["kws01"], tmp_path / "kws01", None, counts.append)
