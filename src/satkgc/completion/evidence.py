"""Why an answer: similar known triples, a shortest path, and the texts that the model compared."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit

from satkgc.completion.answer import Evidence, SimilarTriple, Step
from satkgc.completion.asking import Asker, Subject
from satkgc.completion.exact import ExactIndex
from satkgc.completion.vectors import Float32
from satkgc.kg.vocabulary import Int32
from satkgc.text import TokenBatch


def find_evidence(asker: Asker, head: Subject, relation: int, tail: Subject, k: int) -> Evidence:
    """Score (head, relation, tail) and collect what speaks for it."""
    query = asker.encode([(head, relation)])
    target = asker.entity_vector(tail)
    score = (query[0] @ target)[None]
    known = asker.known((head, relation))
    place = np.array([tail if isinstance(tail, int) else -1], np.int32)
    chances = asker.probabilities(score, place, asker.rivals([(head, relation)], query)[0], known)
    in_graph = isinstance(head, int) and isinstance(tail, int) and max(head, tail) < asker.kg.num_entities
    return Evidence(
        known=asker.holds(head, relation, tail),
        score=float(score[0]),
        probability=None if chances is None else float(chances[0]),
        similar=_similar(asker, head, relation, target, k),
        path=_path(asker, head, relation, tail) if in_graph else None,  # type: ignore[arg-type]
        query_text=_read_back(asker, asker.query_tokens([(head, relation)])),
        entity_text=_read_back(asker, asker.entity_tokens(tail)),
    )


def _similar(asker: Asker, head: Subject, relation: int, target: Float32, k: int) -> tuple[SimilarTriple, ...]:
    """Known triples of the relation, by the likeness of their head to the asked one; of a head's tails the likest."""
    names = asker.names
    heads = names.members(relation, "head", None)
    heads = heads[heads != head] if isinstance(head, int) else heads
    scores, ids = ExactIndex(asker.vectors).search(asker.entity_vector(head)[None], k, allowed=heads)
    found = []
    for score, other in zip(scores[0], ids[0], strict=True):
        if other < 0:
            break
        tails = asker.known((int(other), relation))
        _, best = ExactIndex(asker.vectors).search(target[None], 1, allowed=tails)
        (h, h_name), (t, t_name) = ((names.id(int(i)), names.name(int(i))) for i in (other, best[0, 0]))
        found.append(SimilarTriple(h, h_name, names.kg.relations.id(relation), t, t_name, float(score)))
    return tuple(found)


def _path(asker: Asker, head: int, relation: int, tail: int) -> tuple[Step, ...] | None:
    """A shortest path in the training graph that does not use the asked triple."""
    graph, triples = asker.kg.adjacency, asker.kg.train
    asked = np.array([head, relation, tail], np.int32)

    def edges_between(u: int, v: int) -> Int32:
        slot = graph.neighbour_ptr[u] + np.searchsorted(graph.neighbours_of(u), v)
        if slot == graph.neighbour_ptr[u + 1] or graph.neighbours[slot] != v:
            return np.empty(0, np.int32)
        edges = graph.edges[graph.edge_ptr[slot] : graph.edge_ptr[slot + 1]]
        return edges[(triples[edges] != asked).any(1)]

    direct = len(edges_between(head, tail)) > 0
    nodes = _shortest(graph.neighbour_ptr, graph.neighbours, head, tail, direct)
    if not len(nodes):
        return None
    steps = []
    for u, v in zip(nodes[:-1].tolist(), nodes[1:].tolist(), strict=True):
        h, r, _ = triples[edges_between(u, v)[0]].tolist()
        names, relations = asker.names, asker.kg.relations
        way: Literal["out", "in"] = "out" if h == u else "in"
        steps.append(
            Step(names.id(u), names.name(u), relations.id(r), relations.name(r), way, names.id(v), names.name(v))
        )
    return tuple(steps)


@njit(cache=True, nogil=True)
def _shortest(ptr, neighbours, source, target, direct):  # type: ignore[no-untyped-def]
    """Breadth-first search; `direct` says whether the edge from source to target may be used. Empty: no path."""
    if source == target:
        return np.empty(0, np.int32)
    parent = np.full(len(ptr) - 1, -1, np.int32)
    queue = np.empty(len(ptr) - 1, np.int32)
    queue[0] = source
    parent[source] = source
    first, last = 0, 1
    while first < last and parent[target] < 0:
        u = queue[first]
        first += 1
        for j in range(ptr[u], ptr[u + 1]):
            v = neighbours[j]
            if parent[v] < 0 and (direct or u != source or v != target):
                parent[v] = u
                queue[last] = v
                last += 1
    if parent[target] < 0:
        return np.empty(0, np.int32)
    length = 1
    v = target
    while v != source:
        v = parent[v]
        length += 1
    nodes = np.empty(length, np.int32)
    v = target
    for place in range(length - 1, -1, -1):
        nodes[place] = v
        v = parent[v]
    return nodes


def _read_back(asker: Asker, tokens: TokenBatch) -> str:
    """Tokens as text again: what was cut or added on the way shows."""
    return asker.texts.tokenizer.decode(tokens.ids.tolist())
