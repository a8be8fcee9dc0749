"""EXPRESSION: element-wise operators that NNTool compiles into one fixed-point kernel (docs/rules/gap9/expressions.md).

`tree.py`: the operators in the file's order, in floating point. `formula.py`: integer operations, how shifts merge, and
how large results get. `operators.py`: the integer operations of each operator. `steps.py`: the operations in order, and
how they run. `kernel.py`: the kernel.
"""
