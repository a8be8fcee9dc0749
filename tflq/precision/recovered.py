"""Settings of a search that are recovered before they are judged: each layer once for what stands in front of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tflq.converters.settings import Settings
from tflq.converters.targets import Target
from tflq.graph import Array, Graph, Model
from tflq.parallel.executions import Execution
from tflq.precision.recover import Prepared, RecoverySettings, prepare, recover_network
from tflq.precision.recover.proposals import Recovered
from tflq.precision.results_file import digest_of
from tflq.sampling import GivenSamples

_Key = tuple[int, tuple[int, ...], str]


@dataclass(frozen=True, eq=False)
class Recovering:
    """What settings of a network are recovered with.

    Attributes:
        network: in floating point, with ranges.
        fitted: samples to fit to: dtype[S, *shape] for each input.
        aside: samples kept aside, that decide what stays.
        options: how.
    """

    network: Model
    fitted: tuple[Array, ...]
    aside: tuple[Array, ...]
    options: RecoverySettings

    def __reduce__(self) -> tuple[type[Recovering], tuple[object, ...]]:
        """Send to other processes what it was made from, not what it found."""
        return Recovering, (self.network, self.fitted, self.aside, self.options)

    @cached_property
    def _prepared(self) -> Prepared:
        samples = (GivenSamples(self.fitted), GivenSamples(self.aside))
        return prepare(self.network, self.network, samples, self.options)

    @cached_property
    def _known(self) -> dict[_Key, Recovered]:
        return {}

    def execution(self, target: Target, settings: Settings, widths: Mapping[int, int]) -> Execution:
        """Return the network recovered for some settings, under the target; the same as `recover_network` gives.

        Args:
            target: whose integers count.
            settings: complete.
            widths: node -> bits, of the layers that have a choice.
        """
        graph = target.quantize(self._prepared.plain.main, settings)
        journal = _Shared(self._known, dict(widths), _types(graph))
        return recover_network(self._prepared, target, settings, journal=journal).execution


@dataclass
class _Shared:
    """What is known of layers, for any setting that is the same up to a layer and has the same types of activations.

    Behind a layer that the network's outputs judged, nothing is shared: there later widths took part.

    Attributes:
        known: of all settings so far.
        widths: node -> bits, of this setting.
        types: of its activations.
        is_local: whether no layer so far was judged by the outputs.
    """

    known: dict[_Key, Recovered]
    widths: dict[int, int]
    types: str
    is_local: bool = True

    def find(self, index: int) -> Recovered | None:
        """Return what another setting found for a node."""
        return self.known.get(self._key(index)) if self.is_local else None

    def add(self, recovered: Recovered) -> None:
        """Keep it where nothing behind the layer took part, nor behind one before it."""
        self.is_local = self.is_local and recovered.is_local
        if self.is_local:
            self.known[self._key(recovered.layer.index)] = recovered

    def _key(self, index: int) -> _Key:
        return index, tuple(bits for node, bits in self.widths.items() if node <= index), self.types


def _types(graph: Graph) -> str:
    return digest_of([(t.name, t.dtype, t.quantization) for t in graph.tensors if not t.is_constant])
