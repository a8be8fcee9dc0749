"""NNTool's expression matcher: element-wise operators that become one node (docs/rules/gap9/expressions.md).

`groups.py`: which take part, what needs the matcher, and which belong together. `match.py`: the pass.
"""
