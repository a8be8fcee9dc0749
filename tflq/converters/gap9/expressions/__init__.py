"""NNTool's expression matcher: element-wise operators that become one node (docs/gap9.md, 22).

`operators.py`: which take part, and what needs the matcher. `groups.py`: which of them belong together. `build.py`: a
group as an expression. `match.py`: the pass. `fuse.py`: an expression that its filter takes along.
"""
