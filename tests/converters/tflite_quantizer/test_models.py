"""Float models, quantized: TFLite runs the file with our integers, and the accuracy is the published model's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.converters.tflite_quantizer.helpers import engines, quantize, same_in_tflite
from tests.support.data import data_path
from tflq.benchmarks.labels import read_labels
from tflq.converters.settled import dequantized
from tflq.converters.tflite import model_from_bytes, model_to_bytes, read_model
from tflq.graph import Array, DType
from tflq.interpreter import Engine
from tflq.oracle import Oracle

KWS = ("models", "kws_ref_model_float32.tflite")
VARIANTS = (
    (),
    ("type=int16x8",),
    ("type=weights",),
    ("type=hybrid",),
    ("per_channel=false", "symmetric=true"),
    ("inputs=float", "outputs=float"),
)


def keyword_clips() -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    folder = data_path("datasets", "kws01")
    labels = read_labels(folder)
    clips = np.stack([np.fromfile(folder / label.file, np.int8) for label in labels])
    return clips.reshape(-1, 1, 49, 10, 1), np.array([label.true_class for label in labels])


def real_clips(clips: NDArray[np.int8]) -> NDArray[np.float32]:
    """What the published int8 model's input stands for."""
    return np.asarray((clips.astype(np.float32) - 83) * np.float32(0.5847029089927673), np.float32)


def right(outputs: dict[int, Array], labels: NDArray[np.int64]) -> float:
    (scores,) = outputs.values()
    return 100.0 * float(np.mean(scores.reshape(len(scores), -1).argmax(axis=1) == labels))


@pytest.mark.parametrize("assignments", VARIANTS, ids=lambda a: ",".join(a) or "default")
def test_keywords_in_tflite(assignments: tuple[str, ...], oracle: Oracle) -> None:
    model = read_model(data_path(*KWS))
    clips, _ = keyword_clips()
    samples = real_clips(clips[:20])
    found = quantize(model, [samples], *assignments)
    same_in_tflite(found, [samples[:5]], oracle, integers_only=True)
    wanted = next((a.removeprefix("type=") for a in assignments if a.startswith("type=")), "int8")
    if wanted in ("int8", "int16x8"):
        assert set(engines(found)) == {wanted}
    else:
        assert engines(found).count(wanted) == 10


@pytest.mark.parametrize("assignments", [(), ("type=int16x8",)], ids=["int8", "int16x8"])
@pytest.mark.parametrize("name", ["pretrainedResnet.tflite", "vww_96_float.tflite"])
def test_images_in_tflite(name: str, assignments: tuple[str, ...], oracle: Oracle) -> None:
    model = read_model(data_path("models", name))
    (t,) = model.main.inputs
    samples = np.random.default_rng(3).random((4, *model.main.tensors[t].shape), np.float32)
    found = quantize(model, [samples], *assignments)
    same_in_tflite(found, [samples[:2]], oracle)
    assert len(set(engines(found))) == 1


@pytest.mark.parametrize("assignments", [(), ("per_channel=false",)], ids=["per channel", "per tensor"])
def test_accuracy_on_keyword_clips(assignments: tuple[str, ...]) -> None:
    """Calibrated on 100 clips, the other 900 lose at most half a point against the published int8 model.

    Nor do they gain more than TensorFlow's own quantizer does with these clips: one point (docs/targets/tflite.md).
    """
    clips, labels = keyword_clips()
    published = read_model(data_path("models", "kws_ref_model.tflite"))
    reference = right(Engine(published.main).run([clips[100:]]), labels[100:])
    real = real_clips(clips)
    found = quantize(read_model(data_path(*KWS)), [real[:100]], *assignments)
    ours = right(Engine(found.read).run(found.encode([real[100:]])), labels[100:])
    assert reference - 0.5 <= ours <= reference + 1.0


def test_a_quantized_model_keeps_its_ranges(oracle: Oracle) -> None:
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    clips, _ = keyword_clips()
    found = quantize(model, None)
    same_in_tflite(found, [real_clips(clips[:3])], oracle)
    before, after = (m.tensors[m.inputs[0]].affine for m in (model.main, found.read))
    assert after.scale[0] == before.scale[0]
    assert after.zero_point.tolist() == before.zero_point.tolist()


def test_the_file_is_tensorflows_own() -> None:
    """TensorFlow's calibrator, given the same float model and clips, writes the same constants.

    Ranges of activations come out of float sums in another order there, so that scales differ in the last bits, and a
    bias in units of such a scale by one.
    """
    clips, labels = keyword_clips()
    reason = "tensorflow is not installed: it comes with tflq[tensorflow]"
    calibrator = pytest.importorskip("tensorflow.lite.python.optimize.calibrator", reason=reason)
    types = pytest.importorskip("tensorflow", reason=reason)
    real = real_clips(clips)
    floating = dequantized(read_model(data_path(*KWS)))
    own = calibrator.Calibrator(model_to_bytes(floating))
    content = own.calibrate_and_quantize(lambda: ([x] for x in real[:100]), types.int8, types.int8, False)
    theirs = model_from_bytes(content, "TensorFlow's").main
    found = quantize(floating, [real[:100]])
    ours = found.read
    assert [n.operator for n in ours.nodes] == [n.operator for n in theirs.nodes]
    for mine, yours in zip(ours.nodes, theirs.nodes, strict=True):
        for a, b in zip((*mine.inputs, *mine.outputs), (*yours.inputs, *yours.outputs), strict=True):
            x, y = ours.tensors[a], theirs.tensors[b]
            if x.quantization is None:
                continue
            assert np.allclose(x.affine.scale, y.affine.scale, rtol=1e-6, atol=0)
            assert np.array_equal(x.affine.zero_point, y.affine.zero_point)
            if x.is_constant and x.dtype is DType.INT8:
                assert np.array_equal(x.data, y.data)
            elif x.is_constant:
                assert np.abs(np.asarray(x.data, np.int64) - y.data).max() <= 1
    codes = found.encode([real[100:]])
    mine, yours = (right(Engine(graph).run(codes), labels[100:]) for graph in (ours, theirs))
    assert abs(mine - yours) <= 0.5
