"""Settings that are worth trying, from noise that adds up."""

from __future__ import annotations

from itertools import pairwise, product
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.converters.precision import Costs
from tflq.precision.candidates import NoiseModel, exchanges, noise_model, path


@st.composite
def models(draw: st.DrawFn) -> NoiseModel:
    layers, noise = [], []
    for _ in range(draw(st.integers(1, 4))):
        elements = draw(st.integers(8, 400))
        bits = sorted(draw(st.sets(st.integers(2, 8), min_size=2, max_size=4)), reverse=True)
        layers.append({b: -(-elements * b // 8) for b in bits})
        noise.append({b: draw(st.floats(0.0, 2.0)) for b in bits[1:]})
    return noise_model(Costs(draw(st.integers(0, 9)), tuple(layers)), draw(st.floats(0.0, 0.1)), noise)


@settings(max_examples=60, deadline=None)
@given(models())
def test_the_path_narrows_one_layer_at_a_time_from_end_to_end(model: NoiseModel) -> None:
    found = path(model)
    assert found[0] == tuple(widths[0] for widths in model.widths)
    assert found[-1] == tuple(widths[-1] for widths in model.widths)
    assert len(found) == 1 + sum(len(widths) - 1 for widths in model.widths)
    for wide, narrow in pairwise(found):
        assert sum(a != b for a, b in zip(wide, narrow, strict=True)) == 1
        assert model.costs.of(narrow) <= model.costs.of(wide)
        assert model.predict(narrow) >= model.predict(wide)


@settings(max_examples=60, deadline=None)
@given(models(), st.data())
def test_exchanges_are_all_that_are_near_smaller_and_quiet(model: NoiseModel, data: st.DataObject) -> None:
    every = list(product(*model.widths))
    start = data.draw(st.sampled_from(every))
    most = data.draw(st.sampled_from([0.5, 2.0, inf]))
    places = [{b: i for i, b in enumerate(widths)} for widths in model.widths]

    def is_near(bits: tuple[int, ...]) -> bool:
        moves = [p[b] - p[a] for p, a, b in zip(places, start, bits, strict=True)]
        down, up = [m for m in moves if m > 0], [m for m in moves if m < 0]
        return len(down) == 1 and down[0] <= 2 and len(up) <= 1 and all(m >= -2 for m in up)

    smaller = [b for b in every if model.costs.of(b) < model.costs.of(start) and model.predict(b) <= most]
    wanted = {b for b in smaller if is_near(b)} if len(model.widths) > 1 else set()
    found = exchanges(model, start, most)
    assert set(found) == wanted
    assert len(found) == len(set(found))
    sizes = [model.costs.of(bits) for bits in found]
    assert sizes == sorted(sizes)
