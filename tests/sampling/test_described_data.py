"""Data descriptions: images against Pillow's and numpy's own words, features against tf.signal, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflq.errors import InputError, TflqError
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder, Tensor
from tflq.sampling import given_inputs
from tflq.sampling.described import described_array, read_description

RATE = 16000
KWS = {"kind": "audio", "files": "clips", "normalize": "peak", "features": {"kind": "mfcc"}}


def write(folder: Path, description: dict[str, Any]) -> Path:
    path = folder / "data.json"
    path.write_text(json.dumps(description))
    return path


def real_input(shape: tuple[int, ...]) -> Tensor:
    return Tensor("x", shape, DType.FLOAT32)


def described(folder: Path, description: dict[str, Any], shape: tuple[int, ...]) -> Array:
    return described_array(read_description(write(folder, description)), real_input(shape))[0]


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed: it comes with tflq[image]")
    random = np.random.default_rng(0)
    for name, size in (("b/wide.png", (20, 40)), ("a/high.png", (30, 10))):
        (tmp_path / "pictures" / name).parent.mkdir(parents=True, exist_ok=True)
        values = random.integers(0, 256, (*size, 3), np.uint8)
        images.fromarray(values).save(tmp_path / "pictures" / name)
    return tmp_path


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    wavfile = pytest.importorskip("scipy.io.wavfile", reason="scipy is not installed: it comes with tflq[audio]")
    random = np.random.default_rng(1)
    (tmp_path / "clips").mkdir()
    for name, length in (("a.wav", RATE), ("b.wav", RATE - 3000)):
        time = np.arange(length) / RATE
        sound = np.sin(2 * np.pi * 440 * time) * 9000 + random.normal(0, 2000, length)
        wavfile.write(tmp_path / "clips" / name, RATE, sound.astype(np.int16))
    return tmp_path


def test_images_are_resized_as_pillow_does_and_classed_by_folder(pictures: Path) -> None:
    from PIL import Image

    how = {"kind": "images", "files": "pictures", "size": [8, 6], "labels": "folders"}
    description = read_description(write(pictures, how))
    assert (description.classes, description.labels) == (("a", "b"), (0, 1))
    found, clipped = described_array(description, real_input((1, 8, 6, 3)))
    assert clipped == 0
    for row, path in zip(found, description.files, strict=True):
        expected = np.asarray(Image.open(path).resize((6, 8), Image.Resampling.BILINEAR))
        assert np.array_equal(row[0], expected.astype(np.float32))


def test_channels_crop_mean_and_scale(pictures: Path) -> None:
    from PIL import Image

    how = {"kind": "images", "files": "pictures/b", "size": [20, 20], "crop": "center", "resample": "nearest"}
    plain = described(pictures, how, (1, 20, 20, 3))[0, 0]
    assert np.array_equal(plain, np.asarray(Image.open(pictures / "pictures/b/wide.png"))[:, 10:30])
    swapped = described(pictures, {**how, "channels": "bgr", "mean": [1, 2, 3], "scale": 0.5}, (1, 20, 20, 3))[0, 0]
    assert np.array_equal(swapped, (plain[..., ::-1] - np.float32([1, 2, 3])) * np.float32(0.5))
    gray = described(pictures, {**how, "channels": "gray"}, (20, 20))[0]
    assert np.array_equal(gray, np.asarray(Image.open(pictures / "pictures/b/wide.png").convert("L"))[:, 10:30])


def test_keyword_features_agree_with_tf_signal(clips: Path) -> None:
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed: it comes with tflq[tensorflow]")
    from scipy.io import wavfile

    found = described(clips, KWS, (1, 49, 10, 1))
    for row, name in zip(found, ("a.wav", "b.wav"), strict=True):
        sound = wavfile.read(clips / "clips" / name)[1].astype(np.float32)
        sound = np.pad(sound / sound.max(), (0, RATE - sound.size))
        spectrum = tf.abs(tf.signal.stft(sound, 480, 320))
        banks = tf.tensordot(spectrum, tf.signal.linear_to_mel_weight_matrix(40, 257, RATE, 20.0, 4000.0), 1)
        expected = tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(banks + 1e-6))[:, :10]
        assert np.abs(row.reshape(49, 10) - expected.numpy()).max() < 1e-3


def test_filter_bank_energies_agree_with_tf_signal(clips: Path) -> None:
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed: it comes with tflq[tensorflow]")
    from scipy.io import wavfile

    found = described(clips, {**KWS, "features": {"kind": "lfbe"}}, (1, 49, 1, 40))[0]
    sound = wavfile.read(clips / "clips" / "a.wav")[1].astype(np.float32)
    sound = sound / sound.max()
    emphasized = sound - np.float32(1 - 2**-5) * np.concatenate([np.float32([0]), sound[:-1]])
    frames = tf.signal.stft(
        emphasized, 480, 320, window_fn=lambda n, dtype: tf.signal.hamming_window(n, periodic=False, dtype=dtype)
    )
    power = tf.square(tf.abs(frames)) / 480
    banks = tf.tensordot(power, tf.signal.linear_to_mel_weight_matrix(40, 257, RATE, 0.0, 8000.0), 1)
    expected = np.clip((10 * np.log10(banks.numpy()) + 52) / 64, 0, 1)
    assert np.abs(found.reshape(49, 40) - expected).max() < 1e-4


def test_a_waveform_keeps_its_samples(clips: Path) -> None:
    from scipy.io import wavfile

    found = described(clips, {"kind": "audio", "files": "clips"}, (1, RATE))
    assert np.array_equal(found[0, 0], wavfile.read(clips / "clips" / "a.wav")[1] / np.float32(32768))
    assert not found[1, 0, RATE - 3000 :].any()


def quantized_input() -> Graph:
    builder = GraphBuilder()
    x = builder.input("x", (1, 49, 10, 1), DType.INT8, Affine.per_tensor(np.float32(0.58), 83))
    return builder.build(
        [builder.add("relu", [x], (1, 49, 10, 1), DType.INT8, Affine.per_tensor(np.float32(0.58), 83))]
    )


def test_samples_reach_a_quantized_input_as_its_codes(clips: Path) -> None:
    real = described(clips, KWS, (1, 49, 10, 1))
    given = given_inputs(quantized_input(), [str(write(clips, KWS))])
    codes = np.clip(np.rint(real / np.float32(0.58)) + 83, -128, 127)
    assert np.array_equal(given.arrays[0], codes)
    assert given.arrays[0].dtype == np.int8


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({}, "the key 'kind' is missing"),
        ({"kind": "video"}, "kind is 'video'; allowed is 'images', 'audio'"),
        ({"kind": "images", "files": "none", "size": [4, 4]}, "the folder does not exist"),
        ({"kind": "images", "size": [4]}, r"size is \[4\]; it must be \[height, width\]"),
        ({"kind": "images", "size": [4, 4], "mean": [1, 2]}, "mean is .* it must be 1 or 3 numbers"),
        ({"kind": "images", "size": [4, 4], "flip": True}, "unknown key 'flip'; allowed are channels, classes, crop"),
        ({"kind": "images", "size": [4, 4]}, "contains no file that ends in .png"),
        ({"kind": "audio", "classes": ["a", "a"]}, "it must be a list of unique texts"),
        ({"kind": "audio", "rate": 0}, "rate is 0; it must be a positive integer"),
        ({"kind": "audio", "features": {"kind": "mfcc", "high_hz": 9000}}, "<= 8000 is required"),
        ({"kind": "audio", "features": {"kind": "mfcc", "coefficients": 50}}, "50 coefficients exceed 40 mel_bins"),
        ({"kind": "audio", "features": {"kind": "mfcc", "window": 20000}}, "a clip has 16000 samples"),
    ],
)
def test_descriptions_that_are_refused(tmp_path: Path, description: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_description(write(tmp_path, description))


def test_files_that_are_refused(tmp_path: Path, clips: Path, pictures: Path) -> None:
    from scipy.io import wavfile

    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"x\.png: is not a readable image"):
        described(tmp_path, {"kind": "images", "files": "bad", "size": [4, 4]}, (1, 4, 4, 3))
    with pytest.raises(InputError, match=r"high\.png: has 4x4x3 values; input 'x' needs 1x5x4x3"):
        described(tmp_path, {"kind": "images", "files": "pictures", "size": [4, 4]}, (1, 5, 4, 3))
    (tmp_path / "bad" / "x.wav").write_bytes(b"RIFF")
    for name, samples, message in (
        ("x.wav", None, "is not a readable WAV file"),
        ("y.wav", np.zeros(100, np.int16), "has 8000 samples per second; 16000 are required"),
        ("z.wav", np.zeros((100, 2), np.int16), "has 2 channels; one is required"),
    ):
        for old in (tmp_path / "bad").iterdir():
            if samples is not None:
                old.unlink()
        if samples is not None:
            wavfile.write(tmp_path / "bad" / name, 8000 if name == "y.wav" else RATE, samples)
        with pytest.raises(TflqError, match=f"{name}: {message}"):
            described(tmp_path, {"kind": "audio", "files": "bad"}, (1, RATE))
