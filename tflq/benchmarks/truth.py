"""Labels other than classes of samples: boxes, classes of pixels, texts (docs/guides/data.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tflq.arrays import Doubles
from tflq.benchmarks.metrics import SCORES, BoxDecoder, Boxes, MaskDecoder, Metric, TextDecoder, Truth
from tflq.benchmarks.metrics.truth import Part
from tflq.errors import InputError
from tflq.files import read_bytes
from tflq.graph import Graph
from tflq.sampling import GivenSamples, Samples
from tflq.sampling.described import Description, Images, described_array, nearest, taken_part
from tflq.sampling.described.description import Truth as StatedTruth

DETECTION = "TFLite_Detection_PostProcess"


@dataclass(frozen=True)
class LabeledTruth:
    """Samples with their content as labels: boxes, masks or texts.

    Attributes:
        samples: Samples in the encoding of the model.
        labels: True content of the samples.
        files: Files of the samples.
    """

    samples: Samples
    labels: Truth
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Judged:
    """The score of a model on samples with other labels than classes.

    Attributes:
        name: Name of the execution.
        samples: Number of samples.
        metric: Metric of the score.
        value: Value of the metric.
    """

    name: str
    samples: int
    metric: Metric
    value: float


def load_truth(description: Description, graph: Graph) -> LabeledTruth:
    """Read the files of a description and their labels.

    Raises:
        InputError: A model with other outputs; labels that cannot be read, or that lack a file.
        MissingExtraError: The package that reads the files is not installed.
    """
    of, where = description.truth, description.path
    assert of is not None
    if len(graph.inputs) != 1:
        raise InputError(f"{where}: contains samples of one input; the model has {len(graph.inputs)}")
    truth = {"boxes": _boxes, "masks": _masks, "texts": _texts}[of.kind](description, of, graph)
    array, _ = described_array(description, graph.tensors[graph.inputs[0]])
    return LabeledTruth(GivenSamples([array]), truth, description.files)


def judge(name: str, values: Doubles, data: LabeledTruth) -> Judged:
    """Return the score of outputs, real[S, elements]."""
    metric = data.labels.metric
    return Judged(name, len(values), metric, data.labels.figure(metric, values, values))


def _boxes(description: Description, of: StatedTruth, graph: Graph) -> Truth:
    """Read COCO's instances; outputs as of TFLite_Detection_PostProcess: boxes, classes, scores, their number."""
    how = description.preparation
    assert isinstance(how, Images)
    made = next((node.outputs for node in graph.nodes if node.custom_code == DETECTION), graph.outputs)
    order = made if set(made) == set(graph.outputs) else graph.outputs
    shapes = [tuple(n for n in graph.tensors[t].shape[1:]) for t in order]
    count = shapes[0][0] if shapes[0] else 0
    if [tuple(s) for s in shapes] != [(count, 4), (count,), (count,), ()]:
        shapes_text = ", ".join(str(list(graph.tensors[t].shape)) for t in order)
        raise InputError(
            f"{description.path}: labels are boxes; the model's outputs are {shapes_text}; needed are boxes [1, N, 4], "
            f"classes [1, N], scores [1, N] and their number [1], as {DETECTION} returns them"
        )
    truth, parts, ids = _instances(description, of, how)
    starts = np.cumsum([0, *(graph.tensors[t].size for t in graph.outputs)]).tolist()
    places = {t: (start, stop) for t, start, stop in zip(graph.outputs, starts, starts[1:], strict=False)}
    decode = BoxDecoder(tuple(places[t] for t in order), tuple(parts))
    return Truth(truth, SCORES["boxes"], decode, tuple(ids))


def _instances(description: Description, of: StatedTruth, how: Images) -> tuple[list[Boxes], list[Part], list[int]]:
    """Return the objects of each file in pixels, the part of the file in the model's input, and its id."""
    try:
        content = json.loads(bytes(read_bytes(of.path)))
        images = {image["file_name"]: image for image in content["images"]}
        names = {int(c["id"]): str(c["name"]) for c in sorted(content["categories"], key=lambda c: int(c["id"]))}
        objects: dict[int, list[tuple[Doubles, str, bool]]] = {}
        for one in content["annotations"]:
            left, top, width, height = map(float, one["bbox"])
            corners = np.array([left, top, left + width, top + height])
            entry = (corners, names[one["category_id"]], bool(one.get("iscrowd", 0)))
            objects.setdefault(int(one["image_id"]), []).append(entry)
        sizes = {name: (int(image["width"]), int(image["height"])) for name, image in images.items()}
        ids = {name: int(image["id"]) for name, image in images.items()}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{of.path}: is not a COCO file of instances: {type(error).__name__}: {error}") from None
    classes = description.classes or tuple(names.values())
    truth, parts = [], []
    for file in description.files:
        name = file.relative_to(of.root).as_posix()
        if name not in images:
            raise InputError(f"{of.path}: its images do not contain '{name}', which is in {of.root}")
        truth.append(_objects(objects.get(ids[name], []), classes, of.path))
        parts.append(taken_part(*sizes[name], how))
    return truth, parts, [ids[file.relative_to(of.root).as_posix()] for file in description.files]


def _objects(entries: list[tuple[Doubles, str, bool]], classes: tuple[str, ...], where: Path) -> Boxes:
    unknown = next((name for _, name, _ in entries if name not in classes), None)
    if unknown is not None:
        raise InputError(f"{where}: category '{unknown}' is not one of the classes {', '.join(classes)}; add it")
    corners = np.array([box for box, _, _ in entries]).reshape(-1, 4)
    numbers = np.array([classes.index(name) for _, name, _ in entries], np.int64)
    return Boxes(corners, numbers, is_crowd=np.array([crowd for *_, crowd in entries], bool))


def _masks(description: Description, of: StatedTruth, graph: Graph) -> Truth:
    """Read a mask for each file; the output is a class for each pixel, or a score for each class of each pixel."""
    shape = _only_output(description, graph)
    height, width, channels = (*shape[1:], 1)[:3] if len(shape) in (3, 4) else (0, 0, 0)
    if not height:
        raise InputError(
            f"{description.path}: labels are masks; the model's output is {list(shape)}; needed is [1, H, W] or "
            "[1, H, W, 1], the class of each pixel, or [1, H, W, C], scores of the classes"
        )
    how = description.preparation
    assert isinstance(how, Images)
    files = [_label_path(of, file, (".png", ".npy")) for file in description.files]
    truth = np.stack([nearest(file, (height, width), how) for file in files])
    return Truth(truth, SCORES["masks"], MaskDecoder(height, width, channels))


def _texts(description: Description, of: StatedTruth, graph: Graph) -> Truth:
    """Read a text for each file; the output has a score for each token of each step, [1, T, C]."""
    shape = _only_output(description, graph)
    tokens = list(description.classes)
    if len(tokens) == shape[-1] - 1 and of.blank <= len(tokens):
        tokens.insert(of.blank, "")
    if len(shape) < 2 or len(tokens) != shape[-1] or of.blank >= len(tokens):
        raise InputError(
            f"{description.path}: labels are texts; the model's output is {list(shape)}; needed is [1, T, C], with a "
            f"score for each of the {len(description.classes)} classes and for the blank, {of.blank}"
        )
    texts = [_text(_label_path(of, file, (".txt",))) for file in description.files]
    return Truth(texts, SCORES["texts"], TextDecoder(tuple(tokens), of.blank))


def _only_output(description: Description, graph: Graph) -> tuple[int, ...]:
    if len(graph.outputs) != 1:
        raise InputError(
            f"{description.path}: its labels need a model with one output; the model has {len(graph.outputs)}"
        )
    return tuple(graph.tensors[graph.outputs[0]].shape)


def _label_path(of: StatedTruth, file: Path, suffixes: tuple[str, ...]) -> Path:
    paths = [(of.path / file.relative_to(of.root)).with_suffix(suffix) for suffix in suffixes]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise InputError(f"{file}: has no {' or '.join(map(str, paths))} with its label")
    return path


def _text(path: Path) -> str:
    try:
        return " ".join(bytes(read_bytes(path)).decode("utf-8-sig").split())
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
