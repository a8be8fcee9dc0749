"""The oracle returns what TFLite computes: against golden data that another run of TFLite wrote."""

from __future__ import annotations

import numpy as np

from tests.support.data import data_path


def test_kws_outputs_equal_golden_data(oracle):
    golden = np.load(data_path("golden", "gap9", "kws_ref_model.ne16.npz"))
    model = data_path("models", "kws_ref_model.tflite").read_bytes()
    run = oracle.run(model, [golden["input"][:, None]])
    assert (run.outputs[0][:, 0] == golden["tflite_output"]).all()
