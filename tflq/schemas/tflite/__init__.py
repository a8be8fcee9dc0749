"""The TFLite format: every table and enum of the schema, and reading and writing a model."""

# Tables and enums are declared once, in the modules below; all of them are names of this package.
from tflq.schemas.flatbuffer.table import Table as Table
from tflq.schemas.tflite.codec import decode_model as decode_model
from tflq.schemas.tflite.codec import encode_model as encode_model
from tflq.schemas.tflite.core import *  # noqa: F403  # noqa: F403
from tflq.schemas.tflite.enums import *  # noqa: F403  # noqa: F403
from tflq.schemas.tflite.options import *  # noqa: F403
