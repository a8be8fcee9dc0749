"""TFLite's operators in the terms of ONNX (opset 21), for every format that exchanges float networks.

A rule says once what an operator is in ONNX's operators. ONNX writes those as they are, OpenVINO layer by layer
(openvino/emit/layers.py).
"""
