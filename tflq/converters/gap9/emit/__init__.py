"""The files of a quantized graph: quantization.json, constants.npz, model.tflite, and the accelerator's memory."""
