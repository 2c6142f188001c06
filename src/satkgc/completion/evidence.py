"""Why an answer: similar known triples, a shortest path, and the texts that the model compared."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numba import njit

from satkgc.arrays import Float32, Int32
from satkgc.completion.answer import Asked, Evidence, SimilarTriple, Step
from satkgc.completion.asking import Asker, Query, Subject
from satkgc.completion.exact import ExactIndex
from satkgc.text import TokenBatch


def find_evidence(asker: Asker, head: Subject, relation: int, tail: Subject, k: int, asked: Asked) -> Evidence:
    """Score (head, relation, tail) as an answer to the question for one of the three; collect what speaks for it."""
    query, answer = (head, relation), tail
    if asked == "head":
        query, answer = (tail, relation + asker.kg.num_relations), head
    is_relation = asked == "relation"
    score, probability = _relation(asker, head, relation, tail) if is_relation else _entity(asker, query, answer)
    return Evidence(
        asked=asked,
        known=asker.holds(head, relation, tail),
        score=score,
        probability=probability,
        similar=_similar(asker, head, relation, asker.entity_vector(tail), k),
        path=_path(asker, head, relation, tail),
        query_text=_read_back(asker, asker.query_tokens([query])),
        entity_text=_read_back(asker, asker.entity_tokens(answer)),
    )


def _entity(asker: Asker, query: Query, answer: Subject) -> tuple[float, float | None]:
    """Score and probability of an entity, as the list of answers to the query has them."""
    vector = asker.encode([query])
    score = (vector[0] @ asker.entity_vector(answer))[None]
    place = np.array([answer if isinstance(answer, int) else -1], np.int32)
    chances = asker.probabilities(score, place, asker.rivals([query], vector)[0], asker.known(query))
    return float(score[0]), None if chances is None else float(chances[0])


def _relation(asker: Asker, head: Subject, relation: int, tail: Subject) -> tuple[float, float | None]:
    """Score and probability of a relation: all compete."""
    scores, _, chances = asker.weigh(head, tail, asker.encode(asker.between(head, tail)))
    return float(scores[relation]), None if chances is None else float(chances[relation])


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


def _path(asker: Asker, head: Subject, relation: int, tail: Subject) -> tuple[Step, ...] | None:
    """A shortest path in the training graph that does not use the asked triple; facts join a new entity to it."""
    graph, triples, size = asker.kg.adjacency, asker.kg.train, asker.kg.num_relations
    sources, targets = _entrances(asker, head, (relation, tail)), _entrances(asker, tail, (relation + size, head))
    if head == tail or not sources or not targets:
        return None
    asked = np.array([part if isinstance(part, int) else -1 for part in (head, relation, tail)])

    def edges_between(u: int, v: int) -> Int32:
        slot = graph.neighbour_ptr[u] + np.searchsorted(graph.neighbours_of(u), v)
        if slot == graph.neighbour_ptr[u + 1] or graph.neighbours[slot] != v:
            return np.empty(0, np.int32)
        edges = graph.edges[graph.edge_ptr[slot] : graph.edge_ptr[slot + 1]]
        return edges[(triples[edges] != asked).any(1)]

    direct = not (head in sources and tail in targets) or len(edges_between(head, tail)) > 0
    ends = (np.array(list(nodes), np.int32) for nodes in (sources, targets))
    nodes = _shortest(graph.neighbour_ptr, graph.neighbours, *ends, direct).tolist()
    if not nodes:
        return None
    stops: list[tuple[int, Subject]] = []  # directed relations, and where they lead
    for u, v in pairwise(nodes):
        h, r, _ = triples[edges_between(u, v)[0]].tolist()
        stops.append((r if h == u else r + size, v))
    start: Subject = nodes[0]
    if (fact := sources[nodes[0]]) is not None:
        start, stops = head, [(fact, nodes[0]), *stops]
    if (fact := targets[nodes[-1]]) is not None:
        stops.append(((fact + size) % (2 * size), tail))
    names, relations = asker.names, asker.kg.relations
    places = [names.called(start), *(names.called(stop) for _, stop in stops)]
    return tuple(
        Step(*source, relations.id(d % size), relations.name(d % size), "out" if d < size else "in", *target)
        for (source, target), (d, _) in zip(pairwise(places), stops, strict=True)
    )


def _entrances(asker: Asker, end: Subject, asked: tuple[int, Subject]) -> dict[int, int | None]:
    """Where an end stands in the training graph: itself, or what the facts of a new one lead to, and by what."""
    if isinstance(end, int) and end < asker.kg.num_entities:
        return {end: None}
    facts = asker.names.facts(end)
    return {other: by for by, other in facts if other < asker.kg.num_entities and (by, other) != asked}


@njit(cache=True, nogil=True)
def _shortest(ptr, neighbours, sources, targets, direct):  # type: ignore[no-untyped-def]
    """Breadth-first search between sets; `direct` says whether one edge from a source to a target will do."""
    parent = np.full(len(ptr) - 1, -1, np.int32)
    queue = np.empty(len(ptr) - 1, np.int32)
    wanted = np.zeros(len(ptr) - 1, np.bool_)
    wanted[targets] = True
    first, last, found = 0, 0, -1
    for source in sources:
        if wanted[source]:
            return np.array([source], np.int32)
        parent[source] = source
        queue[last] = source
        last += 1
    while first < last and found < 0:
        u = queue[first]
        first += 1
        for j in range(ptr[u], ptr[u + 1]):
            v = neighbours[j]
            if parent[v] < 0 and (direct or parent[u] != u or not wanted[v]):
                parent[v] = u
                queue[last] = v
                last += 1
                if wanted[v]:
                    found = v
                    break
    if found < 0:
        return np.empty(0, np.int32)
    length = 1
    v = found
    while parent[v] != v:
        v = parent[v]
        length += 1
    nodes = np.empty(length, np.int32)
    v = found
    for place in range(length - 1, -1, -1):
        nodes[place] = v
        v = parent[v]
    return nodes


def _read_back(asker: Asker, tokens: TokenBatch) -> str:
    """Tokens as text again: what was cut or added on the way shows."""
    return asker.texts.tokenizer.decode(tokens.ids.tolist())
