"""EXPRESSION: element-wise operators that NNTool compiles into one fixed-point kernel (docs/rules/gap9/expressions.md).

`tree.py`: the operators as they stand in the file, on real numbers. `formula.py`: integer operations, how shifts merge,
and how large results get. `operators.py`: what each operator becomes. `steps.py`: the operations in order, and how they
run. `kernel.py`: the kernel.
"""
