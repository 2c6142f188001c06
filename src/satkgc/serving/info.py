"""What is served, in a few numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satkgc import __version__
from satkgc.serving.schemas import Info

if TYPE_CHECKING:
    from satkgc.completion import Completer


def describe(completer: Completer) -> Info:
    """The graph's name and size, whether there are probabilities, and entities to begin with."""
    info = completer.info()
    return Info(
        graph=info.graph,
        entities=info.entities,
        relations=info.relations,
        triples=info.triples,
        calibrated=info.calibrated,
        reads_facts=info.reads_facts,
        examples=list(info.examples),
        version=__version__,
    )
