"""Boxes, masks and texts as labels: `tflq bench` gives what the metrics' definitions give, and pycocotools."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.command import Outcome, tflq
from tflq.benchmarks.metrics import Boxes, greedy, mean_average_precision, mean_iou, word_error_rate
from tflq.converters.tflite import write_model
from tflq.graph import DType, GraphBuilder

IMAGES = pytest.importorskip("PIL.Image", reason="Pillow is not installed: it comes with tflq[image]")
COUNT, SAMPLES, NAMES = 6, 9, ("cat", "dog", "cow")
FLOAT = DType.FLOAT32


def write_detector(path: Path) -> None:
    """Each line of the picture is a detection: top, left, bottom, right, class, score; its corner tells how many."""
    b = GraphBuilder()
    x = b.input("x", (1, COUNT, 7, 1), FLOAT)

    def part(name: str, column: int, size: tuple[int, int], shape: tuple[int, ...], scale: float) -> int:
        begin, length = (np.array(v, np.int32) for v in ((0, 0, column, 0), (1, *size, 1)))
        constants = [b.constant(f"{name} {what}", v) for what, v in (("begin", begin), ("size", length))]
        cut = b.add("slice", [x, *constants], (1, *size, 1), FLOAT)
        flat = b.add("reshape", [cut, b.constant(f"{name} shape", np.array(shape, np.int32))], shape, FLOAT)
        return b.add("mul", [flat, b.constant(f"{name} scale", np.float32([scale]))], shape, FLOAT)

    boxes = part("boxes", 0, (COUNT, 4), (1, COUNT, 4), 1 / 128)
    classes, scores = part("classes", 4, (COUNT, 1), (1, COUNT), 1), part("scores", 5, (COUNT, 1), (1, COUNT), 0.125)
    write_model(b.build([boxes, classes, scores, part("number", 6, (1, 1), (1,), 1)]), path)


def drawn_images(draw: np.random.Generator) -> tuple[dict[str, Any], list[Any]]:
    """COCO's instances, and for each picture the pixels that say the detections, many of them near an object."""
    content: dict[str, Any] = {"images": [], "annotations": []}
    content["categories"] = [{"id": i, "name": name} for i, name in zip((3, 1, 7), NAMES, strict=True)]
    pictures = []
    for n in range(SAMPLES):
        width, height = (int(v) for v in draw.integers(40, 300, 2))
        content["images"].append({"id": 50 - n, "file_name": f"a/{n}.png", "width": width, "height": height})
        pixels = np.zeros((COUNT, 7), np.uint8)
        low = draw.integers(0, 80, (COUNT, 2))
        pixels[:, :4] = np.concatenate([low, low + draw.integers(10, 48, (COUNT, 2))], axis=1)
        pixels[:, 4], pixels[:, 5] = draw.integers(0, 3, COUNT), draw.integers(1, 8, COUNT)
        pixels[0, 6] = draw.integers(2, COUNT + 1)
        for row in pixels[: draw.integers(1, COUNT)]:
            top, left, bottom, right = (row[:4] + draw.integers(-4, 5, 4)) / 128
            box = [left * width, top * height, (right - left) * width, (bottom - top) * height]
            one = {"bbox": box, "area": box[2] * box[3], "iscrowd": int(draw.random() < 0.2)}
            number = len(content["annotations"]) + 1
            category = (1, 3, 7)[int(row[4])]
            content["annotations"].append({"id": number, "image_id": 50 - n, "category_id": category, **one})
        pictures.append(pixels)
    return content, pictures


def write_data(folder: Path, pictures: list[Any], **keys: object) -> None:
    for n, pixels in enumerate(pictures):
        path = folder / "pictures" / "a" / f"{n}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        IMAGES.fromarray(pixels).save(path)
    size = list(pictures[0].shape)
    description = {"kind": "images", "files": "pictures", "size": size, "channels": "gray", **keys}
    (folder / "data.json").write_text(json.dumps(description))


def bench(folder: Path, *arguments: object) -> Outcome:
    return tflq("bench", "-m", "m.tflite", "-d", "data.json", *arguments, cwd=folder)


def detections(content: dict[str, Any], pictures: list[Any]) -> list[tuple[int, int, float, list[float]]]:
    """Number of the picture, class, score and corners in pixels."""
    found = []
    for n, pixels in enumerate(pictures):
        image = content["images"][n]
        for row in pixels[: pixels[0, 6]]:
            top, left, bottom, right = row[:4] / 128
            corners = [left * image["width"], top * image["height"], right * image["width"], bottom * image["height"]]
            found.append((n, int(row[4]), float(row[5]) / 8, corners))
    return found


@pytest.fixture
def boxes(tmp_path: Path) -> tuple[Path, dict[str, Any], list[Any]]:
    content, pictures = drawn_images(np.random.default_rng(4))
    write_data(tmp_path, pictures, labels="boxes", truth="instances.json")
    (tmp_path / "instances.json").write_text(json.dumps(content))
    write_detector(tmp_path / "m.tflite")
    return tmp_path, content, pictures


def test_boxes(boxes: tuple[Path, dict[str, Any], list[Any]]) -> None:
    folder, content, pictures = boxes
    found = [[d for d in detections(content, pictures) if d[0] == n] for n in reversed(range(SAMPLES))]
    ours = [Boxes(np.array([d[3] for d in f]), np.array([d[1] for d in f]), np.array([d[2] for d in f])) for f in found]
    truth = []
    for image in reversed(content["images"]):  # of ties the lower id comes first
        own = [a for a in content["annotations"] if a["image_id"] == image["id"]]
        corners = np.array([a["bbox"] for a in own])
        corners[:, 2:] += corners[:, :2]
        kinds, crowd = np.array([(1, 3, 7).index(a["category_id"]) for a in own]), [bool(a["iscrowd"]) for a in own]
        truth.append(Boxes(corners, kinds, is_crowd=np.array(crowd)))
    wanted = [mean_average_precision(ours, truth, *overlaps) for overlaps in ((), ((0.5,),), ((0.75,),))]
    assert 0 < wanted[0] < wanted[1] < 1
    arguments = [word for name in ("map", "map50", "map75", "sqnr") for word in ("--metric", name)]
    (row,) = bench(folder, *arguments, "--json").json["rows"]
    assert row["metrics"] == {**dict(zip(("map", "map50", "map75"), wanted, strict=True)), "sqnr": "inf"}
    assert (row["samples"], row["metric"], row["score"]) == (SAMPLES, "map", wanted[0])
    assert bench(folder, "--at-least", 0.99).status == 1
    text = bench(folder, "--at-least", 0.01, "--report", "p.html")
    assert (text.status, text.out.startswith(f"OK: {wanted[0]:.6g} map as is,")) == (0, True), text.out
    page = (folder / "p.html").read_text()
    assert f"OK: {wanted[0]:.6g} map as is, reference at least 0.01, {SAMPLES} samples" in page
    assert f"map {wanted[0]:.4g}" in page or f">{wanted[0]:.4g}<" in page


def test_boxes_are_judged_as_pycocotools_does(boxes: tuple[Path, dict[str, Any], list[Any]]) -> None:
    coco = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed: it comes with tflq[metrics]")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    folder, content, pictures = boxes
    results = [
        {"image_id": 50 - n, "category_id": (1, 3, 7)[c], "score": s, "bbox": [a, b, right - a, bottom - b]}
        for n, c, s, (a, b, right, bottom) in detections(content, pictures)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        data = coco.COCO(str(folder / "instances.json"))
        judged = cocoeval.COCOeval(data, data.loadRes(results), "bbox")
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    metrics = ("--metric", "map", "--metric", "map50", "--metric", "map75")
    found = bench(folder, *metrics, "--json").json["rows"][0]["metrics"]
    np.testing.assert_allclose(list(found.values()), judged.stats[:3], rtol=1e-12)


@pytest.mark.parametrize("channels", [1, 4])
def test_masks(tmp_path: Path, channels: int) -> None:
    """The model gives the picture itself: the class of each pixel, or scores of four classes."""
    draw = np.random.default_rng(channels)
    b = GraphBuilder()
    shape = (1, 6, 5 * channels, 1)
    x = b.input("x", shape, FLOAT)
    wanted = (1, 6, 5, channels)
    target = b.constant("shape", np.array(wanted, np.int32))
    write_model(b.build([b.add("reshape", [x, target], wanted, FLOAT)]), tmp_path / "m.tflite")
    pictures = [draw.integers(0, 4, (6, 5 * channels)).astype(np.uint8) for _ in range(4)]
    write_data(tmp_path, pictures, labels="masks", truth="masks")
    truth = np.where(draw.random((4, 6, 5)) < 0.2, 255, draw.integers(0, 5, (4, 6, 5)))
    (tmp_path / "masks" / "a").mkdir(parents=True)
    for n, mask in enumerate(truth):
        if n < 2:
            np.save(tmp_path / "masks" / "a" / f"{n}.npy", mask)
        else:
            doubled = mask.repeat(2, axis=0).repeat(2, axis=1).astype(np.uint8)
            IMAGES.fromarray(doubled).save(tmp_path / "masks" / "a" / f"{n}.png")
    raw = np.stack(pictures).reshape(4, 6, 5, channels)
    found = raw[..., 0] if channels == 1 else raw.argmax(axis=3)
    (row,) = bench(tmp_path, "--metric", "miou", "--json").json["rows"]
    assert row["score"] == row["metrics"]["miou"] == mean_iou(found.astype(np.int64), truth, 5)


def test_texts(tmp_path: Path) -> None:
    """Pictures whose columns are the scores of tokens; the blank is the last one, then the first one."""
    tokens = ["a", "b", " ", "c"]
    said = ["ab c", "a", "cc ba", "b b"]
    steps = [[0, 0, 4, 1, 2, 2, 3], [4, 4, 0, 4, 0, 4, 4], [3, 4, 3, 2, 1, 0, 4], [1, 2, 4, 2, 1, 1, 1]]
    heard = ["ab c", "aa", "cc ba", "b  b"]
    b = GraphBuilder()
    x = b.input("x", (1, 7, 5, 1), FLOAT)
    target = b.constant("shape", np.array((1, 7, 5), np.int32))
    write_model(b.build([b.add("reshape", [x, target], (1, 7, 5), FLOAT)]), tmp_path / "m.tflite")
    (tmp_path / "said" / "a").mkdir(parents=True)
    for n, text in enumerate(said):
        (tmp_path / "said" / "a" / f"{n}.txt").write_text(text + "\n")
    (tmp_path / "own.py").write_text("def words(found, truth):\n    return sum(len(t.split()) for t in truth)\n")
    draw = np.random.default_rng(0)
    scores = [np.where(np.eye(5)[row] > 0, 200, draw.integers(0, 200, (7, 5))).astype(np.uint8) for row in steps]
    for blank, order in ((4, [0, 1, 2, 3, 4]), (0, [4, 0, 1, 2, 3])):
        keys = {} if blank == 4 else {"blank": 0}
        write_data(tmp_path, [s[:, order] for s in scores], labels="texts", truth="said", classes=tokens, **keys)
        (row,) = bench(tmp_path, "--metric", "wer", "--metric", "own.py:words", "--json").json["rows"]
        assert row["score"] == row["metrics"]["wer"] == word_error_rate(heard, said)
        assert row["metrics"]["own.py:words"] == 7
    assert greedy(np.array([2, 2, 0, 2, 1, 1]), 0).tolist() == [2, 2, 1]
    assert "wer is better if lower" in bench(tmp_path, "--at-least", 3).refused()
    (tmp_path / "said" / "a" / "3.txt").unlink()
    assert "3.png: has no said/a/3.txt with its label" in bench(tmp_path).refused()


@pytest.mark.parametrize(
    ("change", "arguments", "words"),
    [
        ({}, ("--metric", "top-3"), "--metric top-3 needs classes; the labels of this data set are boxes"),
        ({}, ("--at-least", 30), "--at-least 30: map is 0..1"),
        ({}, ("--mode", "performance"), "performance is measured on samples with classes"),
        ({"truth": "gone.json"}, (), "gone.json: cannot be read: No such file"),
        ({"truth": "data.json"}, (), "data.json: is not a COCO file of instances: KeyError: 'images'"),
        ({"classes": ["cat", "dog"]}, (), "category 'cow' is not one of the classes cat, dog; add it"),
        ({"labels": "masks"}, (), "its labels need a model with one output; the model has 4"),
        ({"labels": "masks", "classes": ["a"]}, (), "labels are masks with numbers as classes"),
        ({"labels": "texts"}, (), '"classes" must name the tokens'),
        ({"blank": 1}, (), "unknown key 'blank'"),
    ],
)
def test_refusals(
    boxes: tuple[Path, dict[str, Any], list[Any]], change: dict[str, object], arguments: tuple[object, ...], words: str
) -> None:
    folder = boxes[0]
    description = json.loads((folder / "data.json").read_text())
    (folder / "data.json").write_text(json.dumps({**description, **change}))
    assert words in bench(folder, *arguments).refused()


def test_what_else_takes_no_boxes(boxes: tuple[Path, dict[str, Any], list[Any]]) -> None:
    folder, content, _ = boxes
    command = ("recover", "m.tflite", "-t", "gap9-ne16", "-d", "data.json", "-o", "out")
    assert (
        "its labels are boxes, which only `tflq bench`, search and sensitivity support"
        in tflq(*command, cwd=folder).refused()
    )
    assert "its labels are boxes; kws01 needs classes" in bench(folder, "kws01").refused()
    content["images"][2]["file_name"] = "other.png"
    (folder / "instances.json").write_text(json.dumps(content))
    assert "instances.json: its images do not contain 'a/2.png'" in bench(folder).refused()
