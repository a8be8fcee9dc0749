"""Which type every tensor gets: NNTool's procedure, docs/rules/gap9/types.md#types.

`records.py`: a type with what it remembers; `forms.py`: what one operator takes and writes; `resolve.py`: a unit, which
is an operator or a fusion; `network.py`: edges and their conflicts; `procedure.py`: the two passes over all of it.
"""
