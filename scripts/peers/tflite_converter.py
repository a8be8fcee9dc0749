"""TFLiteConverter against target tflite: the settings that give its files, on networks that nobody chose.

    scripts/peer tflite-converter [--networks 19] [--seed 1] [--json FILE]

Keras networks are converted as float, float16, dynamic range, and int8 with int8 and with uint8 borders. tflq makes the
others of the float file; the int8 file is the source of the one with uint8 borders, since the converter's ranges are
not in its float file (scheme `borders` asks only where tflq gives the int8 file itself back). Needs tensorflow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from typing import Any

import numpy as np

from peers.campaign import Row, Verdict, parser, report
from peers.graph_comparison import Comparison
from peers.keras_networks import FAMILIES, draw, keras, large, wide
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.tflite import model_from_bytes
from tflq.converters.tflite_quantizer import TFLITE
from tflq.errors import TflqError

SCHEMES = {
    "float16": ("type=float16",),
    "dynamic": ("type=hybrid", "least_weights=1024", "asymmetric_inputs=true"),
}
BORDERS = ("inputs=uint8", "outputs=uint8")


def main(arguments: Sequence[str]) -> int:
    args = parser(__doc__, networks=19).parse_args(list(arguments))
    return report((row for i in range(args.networks) for row in _rows(args.seed, i)), args.json)


def _rows(seed: int, index: int) -> Iterator[Row]:
    families = (large, wide, *FAMILIES)
    family, rng = families[index % len(families)], np.random.default_rng([seed, index])
    keras().utils.clear_session()
    model = draw(rng, family)
    samples = rng.standard_normal((8, 1, 16, 16, 3)).astype(np.float32)
    name = f"{family.__name__}_{seed}_{index}"
    source = _converted(model, "float", samples)
    for scheme, settings in SCHEMES.items():
        yield _row(name, scheme, source, _converted(model, scheme, samples), settings)
    whole = _converted(model, "int8", samples)
    itself = _row(name, "borders", whole, whole, ())
    if itself.verdict is Verdict.EQUAL:
        yield _row(name, "borders", whole, _converted(model, "uint8", samples), BORDERS)


def _row(name: str, scheme: str, source: bytes, theirs: bytes, settings: Sequence[str]) -> Row:
    model = model_from_bytes(source)
    try:
        quantized = TFLITE.quantize(settled_graph(model.main), parse_settings(TFLITE.settings, settings))
    except TflqError as error:
        return Row(name, scheme, Verdict.REFUSED_BY_TFLQ, 0, str(error)[:160])
    (ours,) = TFLITE.emit(quantized, model).values()
    graphs = [settled_graph(model_from_bytes(content).main) for content in (ours, theirs)]
    found = Comparison(graphs[0], graphs[1])
    return Row(name, scheme, Verdict.DIFFERS if found.words else Verdict.EQUAL, found.checks, found.words)


def _converted(model: Any, scheme: str, samples: Any) -> bytes:  # noqa: ANN401 - a Keras model and samples
    tf: Any = import_module("tensorflow")
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if scheme != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if scheme == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if scheme in ("int8", "uint8"):
        converter.representative_dataset = lambda: ([sample] for sample in samples)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = getattr(tf, scheme)
    with redirect_stdout(StringIO()):
        content: bytes = converter.convert()
    return content
