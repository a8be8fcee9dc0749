"""Metrics by their definitions: COCO held to pycocotools, masks and ranks to scikit-learn, others to cases by hand."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.faults import DIGITS
from tflq.benchmarks.metrics import (
    Boxes,
    confusion_matrix,
    find_metric,
    mean_average_precision,
    mean_iou,
    snr_db,
    top_k_percent,
    word_error_rate,
)
from tflq.errors import InputError, OptionError


def drawn_boxes(draw: np.random.Generator, classes: int) -> tuple[Boxes, Boxes]:
    """The objects of one image, some of them crowds, and detections, some near them, with scores that tie."""
    count = int(draw.integers(0, 7))
    low = draw.integers(0, 60, (count, 2)).astype(float)
    truth = np.concatenate([low, low + draw.integers(2, 40, (count, 2))], axis=1)
    kinds = draw.integers(0, classes, count)
    crowd = draw.random(count) < 0.2
    near = truth + draw.integers(-4, 5, truth.shape)
    near[:, 2:] = np.maximum(near[:, 2:], near[:, :2] + 1)
    more = int(draw.integers(0, 6))
    place = draw.integers(0, 60, (more, 2)).astype(float)
    others = np.concatenate([place, place + draw.integers(1, 40, (more, 2))], axis=1)
    found = np.concatenate([near, near, others])
    own = np.concatenate([kinds, kinds, draw.integers(0, classes, more)])
    scores = draw.integers(1, 9, len(found)) / 10
    return Boxes(truth, kinds, is_crowd=crowd), Boxes(found, own, scores)


def coco_summary(truth: list[Boxes], found: list[Boxes], classes: int) -> tuple[float, float, float]:
    """AP, AP50 and AP75 by pycocotools."""
    coco = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed: it comes with tflq[metrics]")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")

    def sized(corners: np.ndarray) -> list[float]:
        left, top, right, bottom = corners.tolist()
        return [left, top, right - left, bottom - top]

    objects = [
        {
            "image_id": n,
            "category_id": int(c),
            "bbox": sized(box),
            "area": sized(box)[2] * sized(box)[3],
            "iscrowd": int(k),
        }
        for n, t in enumerate(truth, 1)
        for box, c, k in zip(t.corners, t.classes, t.is_crowd, strict=True)
    ]
    detections = [
        {"image_id": n, "category_id": int(c), "bbox": sized(box), "score": float(s)}
        for n, f in enumerate(found, 1)
        for box, c, s in zip(f.corners, f.classes, f.scores, strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        data = coco.COCO()
        data.dataset = {
            "images": [{"id": n} for n in range(1, len(truth) + 1)],
            "categories": [{"id": c} for c in range(classes)],
            "annotations": [{"id": n, **entry} for n, entry in enumerate(objects, 1)],
        }
        data.createIndex()
        judged = cocoeval.COCOeval(data, data.loadRes(detections), "bbox")
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    return tuple(judged.stats[:3])


@pytest.mark.parametrize("seed", range(8))
def test_average_precision_is_that_of_pycocotools(seed: int) -> None:
    draw = np.random.default_rng(seed)
    truth, found = map(list, zip(*(drawn_boxes(draw, 3) for _ in range(12)), strict=True))
    wanted = coco_summary(truth, found, 3)
    ours = [mean_average_precision(found, truth, *ious) for ious in ((), ((0.5,),), ((0.75,),))]
    # pycocotools adds 2^-52 to each denominator of a precision
    np.testing.assert_allclose(ours, wanted, rtol=1e-12)


def test_average_precision_by_hand() -> None:
    truth = [Boxes(np.array([[0, 0, 10, 10], [20, 20, 30, 30.0]]), np.array([0, 0]))]
    found = [Boxes(np.array([[0, 0, 10, 10], [50, 50, 60, 60.0]]), np.array([0, 0]), np.array([0.9, 0.8]))]
    assert mean_average_precision(found, truth) == pytest.approx(51 / 101, rel=1e-15)
    wide, narrow = ([Boxes(np.array([[0, 0, w, 10.0]]), np.array([0]), np.ones(1))] for w in (20, 17))
    assert mean_average_precision(narrow, wide) == 0.8  # 0.85 of the area counts for 0.5 to 0.85
    assert np.isnan(mean_average_precision(found, [Boxes(np.zeros((0, 4)), np.zeros(0, np.int64))]))


@pytest.mark.parametrize("seed", range(4))
def test_mean_iou_is_the_jaccard_index(seed: int) -> None:
    jaccard = pytest.importorskip("sklearn.metrics").jaccard_score
    draw = np.random.default_rng(seed)
    truth, found = draw.integers(0, 4, (3, 9, 9)), draw.integers(0, 4, (3, 9, 9))
    counts = draw.random(truth.shape) < 0.8
    wanted = jaccard(truth[counts], found[counts], average="macro")
    assert mean_iou(found, np.where(counts, truth, 255), 5) == pytest.approx(wanted, rel=1e-15)
    with pytest.raises(InputError, match="no pixel has a class"):
        mean_iou(found, np.full_like(truth, 255), 5)


def test_ranks_and_confusion() -> None:
    outputs = np.array([[0.1, 0.6, 0.3], [0.4, 0.4, 0.2], [0.2, 0.3, 0.5]])
    labels = np.array([2, 1, 0])
    assert [top_k_percent(outputs, labels, k) for k in (1, 2, 3)] == [0.0, 200 / 3, 100.0]
    assert confusion_matrix(outputs.argmax(axis=1), labels, 3).tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("seed", range(3))
def test_top_k_is_that_of_scikit_learn(seed: int) -> None:
    score = pytest.importorskip("sklearn.metrics").top_k_accuracy_score
    draw = np.random.default_rng(seed)
    outputs, labels = draw.random((50, 7)), draw.integers(0, 7, 50)
    wanted = 100 * score(labels, outputs, k=3, labels=np.arange(7))
    assert top_k_percent(outputs, labels, 3) == pytest.approx(wanted, rel=1e-15)


@pytest.mark.parametrize(
    ("found", "wanted", "percent"),
    [
        (["the cat sat"], ["the cat sat"], 0.0),
        (["the cat sat down"], ["the cat sat"], 100 / 3),
        (["cat"], ["the cat sat"], 200 / 3),
        (["a b", ""], ["b a", "c"], 100.0),
    ],
)
def test_word_error_rate(found: list[str], wanted: list[str], percent: float) -> None:
    assert word_error_rate(found, wanted) == pytest.approx(percent, rel=1e-15)
    with pytest.raises(InputError, match="the true sentences contain no word"):
        word_error_rate([""], [""])


def test_signal_to_noise() -> None:
    wanted = np.array([3.0, 4.0])
    assert snr_db(wanted + np.array([0.5, 0.0]), wanted) == 20.0
    assert snr_db(wanted, wanted) == np.inf


OWN = """
def half(outputs, labels):
    assert outputs.shape == (8, 10) and labels.shape == (8,) and outputs.dtype == "float64"
    return 0.5

def nothing(outputs, labels):
    return None

def wrong(outputs, labels):
    return labels[99]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    archive = np.load(DIGITS.parent / "digits_test.npz")
    lines = []
    for n, (image, label) in enumerate(zip(archive["images"][:8], archive["labels"][:8], strict=True)):
        image.tofile(tmp_path / f"{n}.bin")
        lines.append(f"{n}.bin,10,{label}\n")
    (tmp_path / "y_labels.csv").write_text("".join(lines))
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path


def test_bench_shows_metrics_and_confusion(folder: Path) -> None:
    arguments = ("bench", "-m", DIGITS, "-d", ".", "-t", "gap9-ne16", "--metric", "top-2", "--metric", "own.py:half")
    rows = tflq(*arguments, "--metric", "sqnr", "--json", cwd=folder).json
    first, second = rows["rows"]
    assert first["metrics"] == {"top-2": 100.0, "own.py:half": 0.5, "sqnr": "inf"}
    assert second["metrics"]["sqnr"] > 10
    assert np.trace(np.array(rows["confusion"]["as is"])) == first["right"]
    out = tflq(*arguments, "--confusion", "--report", "out.html", cwd=folder).out
    assert "top-2   own.py:half" in out
    assert "gap9-ne16: classes taken for each other" in out
    page = (folder / "out.html").read_text()
    assert "as is: classes taken for each other" in page
    assert "own.py:half" in page


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("top-0", "no metric is called 'top-0'; available: top-K (as top-3), sqnr, map, map50, map75, miou, wer and "),
        ("own.py:none", "own.py: has no function 'none'; available: half, nothing, wrong"),
        ("own.py:nothing", "metric own.py:nothing returned NoneType; it must return one number"),
        ("own.py:wrong", "metric own.py:wrong failed: IndexError: index 99 is out of bounds"),
        ("gone.py:f", "gone.py: cannot be run: FileNotFoundError"),
    ],
)
def test_refusals(folder: Path, metric: str, words: str) -> None:
    assert words in tflq("bench", "-m", DIGITS, "-d", ".", "--metric", metric, cwd=folder).refused()


def test_names() -> None:
    assert find_metric("top-5").text_of(93.25) == "93.25 %"
    with pytest.raises(OptionError, match="no metric is called 'f1'"):
        find_metric("f1")
