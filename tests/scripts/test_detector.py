"""The whole detector on a few images with the committed weights; scripts/mask_rcnn.py prints the table."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from detector.evaluation import WEIGHTS, Row, load, pasted, pictures, rows
from detector.float_detector import detect
from detector.graphs import Parts
from detector.integer_detector import INT8, MIXED, IntegerDetector, calibrated
from detector.network import STRIDES
from detector.scenes import HEIGHT, WIDTH, scenes

import tflq
from tests.support.tracked import ROOT
from tflq import Graph

IMAGES = 5
PACKAGES = ("tflq", "converters", "interpreter", "schemas")
FILES = [ROOT / "scripts" / "mask_rcnn.py", *sorted((ROOT / "scripts" / "detector").glob("*.py"))]


@pytest.fixture(scope="module")
def parts() -> Parts:
    return load(WEIGHTS)


@pytest.fixture(scope="module")
def table(parts: Parts) -> Sequence[Row]:
    return list(rows(parts, IMAGES, [2], (INT8, MIXED)))


def test_the_float_detector_finds_what_is_there(table: Sequence[Row]) -> None:
    assert table[0].name == "float"
    assert table[0].precision > 60
    assert table[0].masks > 60
    assert table[0].agreement == 100


def test_sixteen_bits_on_the_way_keep_the_boxes(table: Sequence[Row]) -> None:
    _, narrow, mixed = table
    assert mixed.agreement > 75
    assert mixed.agreement > narrow.agreement + 20
    assert abs(mixed.precision - table[0].precision) < 5


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_an_example_of_the_public_names_alone(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imported = [a.name for node in nodes if isinstance(node, ast.Import) for a in node.names]
    imported += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    assert {name for name in imported if name.split(".")[0] in PACKAGES} <= {"tflq"}
    assert not [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "tflq"]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    named = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "tflq"}
    assert named <= set(dir(tflq))
    private = [node for node in attributes if node.attr.startswith("_") and not node.attr.startswith("__")]
    assert all(isinstance(node.value, ast.Name) and node.value.id == "self" for node in private)


def test_no_map_is_square_and_the_file_is_small() -> None:
    assert all(HEIGHT // stride != WIDTH // stride for stride in STRIDES)
    assert WEIGHTS.stat().st_size < 1_000_000


def _no_float_inside(graph: Graph) -> bool:
    written = [graph.tensors[t] for node in graph.nodes for t in node.outputs]
    return all(t.dtype.is_integer for t in [*written, *(graph.tensors[t] for t in graph.inputs)])


def test_everything_from_image_to_boxes_is_integer(parts: Parts) -> None:

    trace = detect(parts, pictures(list(scenes(1, 3))))
    detector = IntegerDetector(calibrated(parts, trace, 1), MIXED)
    engines = (
        detector.first,
        detector.propose,
        detector.pool,
        detector.head,
        detector.finish,
        detector.pool_masks,
        detector.mask,
    )
    assert all(_no_float_inside(engine.graph) for engine in engines)
    scores = detector.head.graph.tensors[detector.head.graph.outputs[0]]
    assert (scores.affine.bits, scores.affine.signed) == (16, False)
    weights = [t for t in detector.first.graph.tensors if t.is_constant and t.name.endswith("/weights")]
    assert {t.affine.bits for t in weights} == {8}


def test_a_mask_is_pasted_into_its_box() -> None:
    mask = np.zeros((14, 14))
    mask[:, 7:] = 1
    picture = pasted(mask, np.array([0.25, 0.5, 0.75, 1.0]))
    assert picture.sum() == HEIGHT // 2 * WIDTH // 4
    assert picture[HEIGHT // 2, WIDTH * 7 // 8 :].all()
    assert not picture[:, : WIDTH * 3 // 4 - 1].any()
