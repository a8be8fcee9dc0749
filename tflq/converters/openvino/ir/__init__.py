"""IR v11 of OpenVINO as it stands in the files: layers, ports, edges and constants; no meaning yet."""

from __future__ import annotations

from tflq.converters.openvino.ir.network import Builder, Layer, Network, Port, Source, Value
from tflq.converters.openvino.ir.read import network_from_bytes
from tflq.converters.openvino.ir.write import network_to_bytes

__all__ = ["Builder", "Layer", "Network", "Port", "Source", "Value", "network_from_bytes", "network_to_bytes"]
