"""The files of a quantised graph: quantization.json, constants.npz, model.tflite, and the accelerator's memory."""
