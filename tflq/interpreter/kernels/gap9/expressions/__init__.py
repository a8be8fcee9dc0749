"""EXPRESSION: element-wise operators that NNTool compiles into one fixed-point kernel (docs/gap9.md, 22).

`tree.py`: the operators as they stand in the file, on real numbers. `formula.py`: integer operations, and how shifts
merge. `values.py`: an integer formula with its unit, and rescaling. `operators.py`: what each operator becomes.
`bounds.py`: how large its integers can get. `steps.py`: the operations in order, and how they run. `kernel.py`: the
kernel.
"""
