"""Every operator of the corpus, quantized: TFLite takes the file, and integers are ours bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.converters.tflite_quantizer.helpers import quantize, same_in_tflite
from tests.support.data import data_files
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import read_model
from tflq.converters.tflite_quantizer import TFLITE
from tflq.errors import UnsupportedError
from tflq.oracle import Oracle, OracleRefused
from tflq.parallel.executions import for_target
from tflq.sampling import RandomSamples

FILES = data_files("corpus", "single_op_float")
KINDS = ("int8", "int16x8")


@pytest.mark.skipif(not FILES, reason="TFLQ_DATA is not set: no corpus on this machine")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_integers_of_the_corpus(path: Path, kind: str, oracle: Oracle) -> None:
    model = read_model(path)
    if len(model.graphs) > 1:
        with pytest.raises(UnsupportedError, match="it runs other graphs, whose tensors are not calibrated"):
            for_target(model.main, TFLITE, parse_settings(TFLITE.settings, [f"type={kind}"], []))
        return
    samples = list(RandomSamples(model.main, 3, 1).take(0, 3))
    found = quantize(model, samples, f"type={kind}")
    try:
        same_in_tflite(found, samples, oracle, integers_only=True)
    except OracleRefused as error:
        if "find op" not in str(error):
            raise
        pytest.skip("TFLite's reference kernels lack this operator in any type")
