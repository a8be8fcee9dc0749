"""search, sensitivity and search --backward on masks and texts: a setting's score is what `bench` gives it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.command import Outcome, tflq
from tflq.converters.tflite import write_model
from tflq.graph import Affine, DType, GraphBuilder

IMAGES = pytest.importorskip("PIL.Image", reason="Pillow is not installed: it comes with tflq[image]")
SAMPLES, HEIGHT, WIDTH, CLASSES = 12, 6, 8, 4
TOKENS = ["a", "b", " ", ""]
PIXEL = Affine.per_tensor(np.float32(1), -128)


def write_scores(path: Path) -> None:
    """Two filters of 1 x 1: the second one's outputs are a score for each class of each pixel, [1, H, W, C]."""
    draw = np.random.default_rng(7)
    b = GraphBuilder()
    x = b.input("x", (1, HEIGHT, WIDTH, 1), DType.INT8, PIXEL)
    window = {"stride_h": 1, "stride_w": 1, "padding": "VALID", "dilation_h_factor": 1, "dilation_w_factor": 1}
    before = np.float32(1)
    for name, outs, ins, act, after in (("hidden", 16, 1, "relu", 5), ("scores", CLASSES, 16, "none", 16)):
        scale = np.float32(0.02)
        w = b.constant(f"{name} w", draw.integers(-127, 128, (outs, 1, 1, ins), np.int8), Affine.per_tensor(scale, 0))
        codes = draw.integers(-4000, 4000, outs, np.int32) // ins
        bias = b.constant(f"{name} b", codes, Affine.per_tensor(scale * before, 0, 32))
        shape, real = (1, HEIGHT, WIDTH, outs), Affine.per_tensor(np.float32(after), 0)
        x = b.add("conv_2d", [x, w, bias], shape, DType.INT8, real, **window, fused_activation_function=act)  # type: ignore[arg-type]
        before = np.float32(after)
    write_model(b.build([x]), path)


@pytest.fixture(scope="module", params=["masks", "texts"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures and, as their truth, what the model as it is finds, with a fifth of it changed."""
    root, draw = tmp_path_factory.mktemp(request.param), np.random.default_rng(1)
    write_scores(root / "m.tflite")
    (root / "truth" / "a").mkdir(parents=True)
    (root / "pictures" / "a").mkdir(parents=True)
    pictures = draw.integers(0, 256, (SAMPLES, HEIGHT, WIDTH)).astype(np.uint8)
    np.save(root / "x.npy", (pictures.astype(np.int16) - 128).astype(np.int8)[..., None])
    tflq("run", "m.tflite", "-i", "x.npy", "-o", "y.npz", cwd=root)
    with np.load(root / "y.npz") as file:
        best = file[file.files[0]].reshape(SAMPLES, HEIGHT, WIDTH, CLASSES).argmax(axis=3)
    best = np.where(draw.random(best.shape) < 0.2, draw.integers(0, CLASSES, best.shape), best)
    for n, picture in enumerate(pictures):
        IMAGES.fromarray(picture).save(root / "pictures" / "a" / f"{n:02}.png")
        if request.param == "masks":
            np.save(root / "truth" / "a" / f"{n:02}.npy", best[n])
        else:
            (root / "truth" / "a" / f"{n:02}.txt").write_text(
                " ".join("".join(TOKENS[t] for t in best[n].ravel()).split())
            )
    keys = {"labels": "masks"} if request.param == "masks" else {"labels": "texts", "classes": TOKENS[:3], "blank": 3}
    description = {"kind": "images", "files": "pictures", "size": [HEIGHT, WIDTH], "channels": "gray", "truth": "truth"}
    (root / "data.json").write_text(json.dumps({**description, **keys}))
    return root


def run(folder: Path, command: str, *arguments: object, jobs: int = 1) -> Outcome:
    chosen = ("-t", "gap9-ne16", "--widths", "2,4,8", "-d", "data.json", "-j", jobs)
    return tflq(command, "m.tflite", *chosen, *arguments, cwd=folder)


def benched(folder: Path, bits: list[int]) -> float:
    layers = [word for n, b in enumerate(bits) for word in ("--layer", f"{n}:weight_bits={b}")]
    rows = tflq("bench", "-m", "m.tflite", "-d", "data.json", "-t", "gap9-ne16", *layers, "--json", cwd=folder).json[
        "rows"
    ]
    return float(rows[-1]["score"])


def is_texts(folder: Path) -> bool:
    return bool(json.loads((folder / "data.json").read_text())["labels"] == "texts")


def test_search(folder: Path, quick: bool) -> None:
    name, bound = ("wer", ("--at-most", 70)) if is_texts(folder) else ("miou", ("--at-least", 0.3))
    found = run(folder, "search", *bound, "--json", jobs=1 if quick else 2).json
    assert (found["required"]["metric"], found["required"]["score"]) == (name, bound[1])
    assert found["chosen"] is not None
    scores = {tuple(point["bits"]): point["score"] for point in found["points"]}
    assert len(set(scores.values())) > 2
    for bits in ([8, 8], found["chosen"]["bits"]):
        assert scores[tuple(bits)] == benched(folder, bits)
    chosen = found["chosen"]["score"]
    assert chosen <= bound[1] if is_texts(folder) else chosen >= bound[1]
    some = run(folder, "search", *bound, "--take", "0:5", "--json").json["points"]
    assert {tuple(point["bits"]): point["score"] for point in some} != scores


def test_sensitivity_and_a_function_of_the_users(folder: Path) -> None:
    (folder / "own.py").write_text("def half(found, truth):\n    return len(found) + len(truth)\n")
    found = run(folder, "sensitivity", "--json").json
    assert found["metric"] == ("wer" if is_texts(folder) else "miou")
    assert found["layers"][0]["results"]["2"]["score"] == benched(folder, [2, 8])
    own: dict[str, Any] = run(folder, "sensitivity", "--metric", "own.py:half", "--json").json
    assert own["layers"][0]["results"]["2"]["score"] == 2 * SAMPLES


def test_backward(folder: Path) -> None:
    command = ("search", "m.tflite", "--backward", "-t", "aipu", "-d", "data.json")
    found = tflq(*command, "--drop", 0.01, "--take", "2:12", "--json", cwd=folder).json
    assert found["metric"] == ("wer" if is_texts(folder) else "miou")
    assert found["tried"]


def test_bench_at_most(folder: Path) -> None:
    command = ("bench", "-m", "m.tflite", "-d", "data.json")
    if is_texts(folder):
        score = tflq(*command, "--json", cwd=folder).json["rows"][0]["score"]
        assert tflq(*command, "--at-most", score, cwd=folder).status == 0
        assert tflq(*command, "--at-most", score - 0.1, cwd=folder).status == 1
    else:
        line = tflq(*command, "--at-most", 0.5, cwd=folder).refused()
        assert "miou is better if higher; use --at-least" in line


def test_refused(folder: Path) -> None:
    worse = "--at-least" if is_texts(folder) else "--at-most"
    assert "is better if" in run(folder, "search", worse, 0.5).refused()
    kind = "texts" if is_texts(folder) else "masks"
    line = run(folder, "search", "--metric", "top-2", "--at-least", 50).refused()
    assert f"--metric top-2 needs classes; the labels of this data set are {kind}" in line
