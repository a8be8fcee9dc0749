"""Use cases as functions: what a command of `tflq` does, the function of its name in this package does.

One module a use case, `tflq.api.run` holds `run` and what it takes and returns; `tflq` exports them all by name. A
function takes a model (or where to read it), samples, and a frozen record of options, whose fields may be given as
keyword arguments as well; it returns a frozen result (`tflq.api.result`). Nothing here prints.
"""
