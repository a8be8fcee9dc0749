"""NNTool's expression matcher: element-wise operators that become one node (docs/gap9.md, 22).

`groups.py`: which take part, what needs the matcher, and which belong together. `match.py`: the pass.
"""
