"""Use cases as functions: each command of `tflq` has a function of the same name.

Each use case is one module: `tflq.api.run` contains `run`, its options and its result; `tflq` exports all of them. A
function takes a model (or its source), samples, and a frozen record of options; the fields of the record can also be
passed as keyword arguments. It returns a frozen result (`tflq.api.result`). No function prints.
"""
