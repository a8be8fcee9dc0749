"""sww01 on streams: windows as the reference device cuts them, counts as the runner's, and the board in front of it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.data import data_path
from tflq.benchmarks.accuracy import answers
from tflq.benchmarks.device import Inference
from tflq.benchmarks.interface_board import InterfaceBoard
from tflq.benchmarks.tasks import find_task
from tflq.benchmarks.wake_words import THRESHOLD, count_detections, load_streams, stream_features
from tflq.converters.tflite import read_model
from tflq.errors import InputError
from tflq.parallel.executions import as_is

wavfile = pytest.importorskip("scipy.io.wavfile", reason="scipy is not installed: it comes with tflq[audio]")
MODEL = "str_ww_ref_model.tflite"
TASK = find_task("sww01")


def write_stream(folder: Path, seed: int, seconds: float = 4.0, channels: int = 2) -> Path:
    """Write noise that swells, in stereo, with its truth: one wake word said."""
    draw = np.random.default_rng(seed)
    count = int(seconds * 16000)
    sound = draw.normal(0, 1, count) * 3000 * np.abs(np.sin(np.arange(count) / 5000))
    left = np.clip(sound, -32768, 32767).astype(np.int16)
    wavfile.write(folder / "noise.wav", 16000, left if channels == 1 else np.stack([left, left[::-1]], axis=1))
    truth = [{"wav_file": "noise.wav", "detection_windows": [[1.0, 1.5]], "length_sec": seconds, "sample_rate": 16000}]
    path = folder / "sww_own_test.json"
    path.write_text(json.dumps(truth))
    return path


def features_one_by_one(sound: np.ndarray) -> np.ndarray:
    """The reference device's loop, one block of 512 samples after the other, in double precision."""
    block, last, found = np.zeros(1024), 0.0, []
    window = np.array([0.54 - 0.46 * math.cos(2 * math.pi * n / 1023) for n in range(1024)])
    mel = lambda hz: 1127 * math.log(1 + hz / 700)  # noqa: E731
    edges = np.linspace(mel(0), mel(8000), 42)
    for start in range(0, len(sound) - 511, 512):
        block = np.concatenate([block[512:], sound[start : start + 512]])
        emphasized = block - 0.96875 * np.concatenate([[last], block[:-1]])
        last = block[511]
        power = np.abs(np.fft.rfft(emphasized * window)) ** 2 / 1024
        row = []
        for low, middle, high in zip(edges, edges[1:], edges[2:], strict=False):
            total = 0.0
            for n in range(1, 513):
                at = mel(8000 * n / 512)
                total += power[n] * max(0.0, min((at - low) / (middle - low), (high - at) / (high - middle)))
            row.append(min(max((10 * math.log10(max(total, 1e-30)) + 52) / 64, 0.0), 1.0))
        found.append(row)
    return np.array(found)


def test_features_are_those_of_the_device(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    sound = draw.normal(0, 0.1, 512 * 5 + 100)
    np.testing.assert_allclose(stream_features(sound), features_one_by_one(sound), rtol=0, atol=1e-6)


@pytest.mark.parametrize("channels", [1, 2])
def test_windows_hold_the_last_thirty_frames(tmp_path: Path, channels: int) -> None:
    model = read_model(data_path("models", MODEL))
    data = load_streams(TASK, write_stream(tmp_path, 2, channels=channels), model.main)
    assert data.samples.count == 4 * 16000 // 512
    (first,), (all_of_them,) = data.samples.take(0, 1), data.samples.take(0, data.samples.count)
    assert first.shape == (1, *model.main.tensors[model.main.inputs[0]].shape)
    buffer = np.zeros((30, 40), np.int8)  # the device's own loop: shift, then cast
    _, sound = wavfile.read(tmp_path / "noise.wav")
    features = stream_features((sound if channels == 1 else sound[:, 0]) / 32768)
    quantization = model.main.tensors[model.main.inputs[0]].quantization
    scale = np.float32(quantization.scale[0])
    for row, window in zip(features, all_of_them, strict=True):
        cast = [[(int(v) + 128) % 256 - 128 for v in row / scale - np.float32(128)]]
        buffer = np.concatenate([buffer[1:], cast])
        assert (window.reshape(30, 40) == buffer).all()


@pytest.mark.parametrize(
    ("times_ms", "words", "counts"),
    [
        ([], [(1.0, 2.0)], (0, 0)),
        ([1500, 1532], [(1.0, 2.0)], (1, 0)),
        ([4000], [(1.0, 2.0)], (1, 0)),  # two seconds behind the end
        ([4032], [(1.0, 2.0)], (0, 1)),
        ([992], [(1.0, 2.0)], (0, 1)),
        ([3200], [(1.0, 2.0), (3.0, 3.5)], (1, 0)),  # the first word takes it
        ([100, 1100, 1101], [], (0, 2)),  # within a second of the first one
    ],
)
def test_detections_are_counted_as_the_runner_does(
    times_ms: list[int], words: list[tuple[float, float]], counts: tuple[int, int]
) -> None:
    assert count_detections(np.array(times_ms, np.int64), words) == counts


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ('[{"wav_file": "a.wav"}]', "is not a truth of streams: KeyError 'detection_windows'"),
        ('[{"wav_file": "a.wav", "detection_windows": [], "length_sec": 1}]', "the recording a.wav is missing"),
    ],
)
def test_refusals(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "x_test.json").write_text(content)
    with pytest.raises(InputError, match=re.escape(message)):
        load_streams(TASK, tmp_path, read_model(data_path("models", MODEL)).main)
    (tmp_path / "y_test.json").write_text(content)
    with pytest.raises(InputError, match=r"contains x_test\.json, y_test\.json; name one"):
        load_streams(TASK, tmp_path, read_model(data_path("models", MODEL)).main)


def test_bench_and_board_find_the_same(tmp_path: Path) -> None:
    model = read_model(data_path("models", MODEL))
    truth = write_stream(tmp_path, 3)
    data = load_streams(TASK, truth, model.main)
    scores = answers(as_is(model), data.samples)[:, 0]
    board = InterfaceBoard(Inference(TASK, as_is(model)), "x", folder=tmp_path)

    def ask(command: str) -> list[str]:
        return list(board.receive(f"{command}%".encode()))

    assert ask("ls") == ["noise.wav", "m-ready"]
    assert ask("play noise.wav")[0].startswith("e-[The device does not listen")
    assert ask("dut start") == ["m-[passed on]", "m-ready", "m-[listening]", "m-ready"]
    assert "not a readable WAV file" in ask("play none.wav")[0]
    assert ask("play noise.wav")[-2:] == ["m-played-[noise.wav]", "m-ready"]
    head, *times, ready = ask("print_detections")
    assert (head, ready) == ("Detection Timestamps (ms)", "m-ready")
    frames = {0, *np.flatnonzero(scores > THRESHOLD).tolist()}
    assert [int(time.strip(",")) for time in times] == [32 * (frame + 1) for frame in sorted(frames)]
    stopped = ask("dut stop")
    assert stopped[2] == "target activations:"
    assert np.array_equal(json.loads(stopped[3]), scores * 256 - 128)
    duty = ask("print_dutycycle")
    middle = duty.index("Duty cycle stop times (s)")
    starts, stops = (
        [int(n) for line in part for n in line.split(",") if n] for part in (duty[1:middle], duty[middle + 1 : -1])
    )
    assert len(starts) == len(stops) == len(scores)
    assert all(stop > start for start, stop in zip(starts, stops, strict=True))
    (row,) = tflq("bench", "-m", data_path("models", MODEL), "-d", f"sww01={truth}", "--json").json["rows"]
    found, false = count_detections(32 * np.array(sorted(frames - {0}), np.int64), [(1.0, 1.5)])
    assert (row["true_positives"], row["false_positives"], row["false_negatives"]) == (found, false, 1 - found)
    assert row["false_accepts_per_hour"] == false * 900
