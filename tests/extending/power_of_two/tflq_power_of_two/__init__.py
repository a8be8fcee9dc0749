"""int8 with scales 2^-f: a worked example of a target outside tflq (docs/internals/extending.md)."""
