"""Why an answer: similar known triples, a shortest path, the paths a path model follows, and the texts compared."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from satkgc.arrays import Int32
from satkgc.completion.answer import Evidence, ExpertShare, SimilarTriple, Step, StrongPath, TriplePart
from satkgc.completion.engine import Engine, Query
from satkgc.completion.experts import expert_shares, path_model, text_model
from satkgc.completion.names import EntityOrText
from satkgc.completion.retriever import LAST_NEW
from satkgc.kg import shortest_path
from satkgc.models import FusedModel, Questions, strongest_paths

STRONG_PATHS = 3  # at most


def find_evidence(
    engine: Engine, head: EntityOrText, relation: int, tail: EntityOrText, k: int, asked: TriplePart
) -> Evidence:
    """Score (head, relation, tail) as an answer to the question for one of the three; collect what supports it."""
    query, answer = (head, relation), tail
    if asked == "head":
        query, answer = (tail, relation + engine.kg.num_relations), head
    for asked_of in ((head, relation), (tail, relation + engine.kg.num_relations)):
        engine.check_query(asked_of)
    is_relation = asked == "relation"
    score, probability = _relation(engine, head, relation, tail) if is_relation else _entity(engine, query, answer)
    query_text, entity_text = _texts(engine, query, answer)
    experts = _experts(engine, query, answer)
    return Evidence(
        asked=asked,
        known=engine.is_known(head, relation, tail),
        score=score,
        probability=probability,
        similar=_similar(engine, head, relation, tail, k),
        path=_path(engine, head, relation, tail),
        query_text=query_text,
        entity_text=entity_text,
        experts=experts,
        strong_paths=_strong_paths(engine, query, answer),
        objection=engine.objection(head, relation, tail),
    )


def _entity(engine: Engine, query: Query, answer: EntityOrText) -> tuple[float, float | None]:
    """Score and probability of an entity, as the list of answers to the query has them."""
    encoded = engine.encode([query])
    score = engine.retriever.score_one(encoded, answer)
    id = np.array([answer if isinstance(answer, int) else -1], np.int32)
    probabilities = engine.probabilities(score, id, engine.competitors([query], encoded)[0], engine.known(query))
    return float(score[0]), None if probabilities is None else float(probabilities[0])


def _relation(engine: Engine, head: EntityOrText, relation: int, tail: EntityOrText) -> tuple[float, float | None]:
    """Score and probability of a relation: all compete."""
    encoded = engine.encode(engine.relation_queries(head, tail))
    scores, _, probabilities = engine.score_relations(head, tail, encoded)
    return float(scores[relation]), None if probabilities is None else float(probabilities[relation])


def _experts(engine: Engine, query: Query, answer: EntityOrText) -> tuple[ExpertShare, ...]:
    """What each expert of a fused model has to do with the answer."""
    if not isinstance(engine.model, FusedModel):
        return ()
    questions, id = engine.questions([query]), answer
    if not isinstance(answer, int):
        questions, id = Questions(questions.entities, questions.relations, (*questions.new, answer)), LAST_NEW
    competitors = engine.competitors([query], engine.encode([query]))[0].ids
    ids = np.array([id], np.int32)
    return expert_shares(engine.retriever, questions, ids, competitors, engine.known(query))[0]


def _similar(
    engine: Engine, head: EntityOrText, relation: int, tail: EntityOrText, k: int
) -> tuple[SimilarTriple, ...]:
    """Known triples of the relation whose heads are most like this one, each with the tail most like this one.

    A model without vectors has no measure of likeness, and none.
    """
    names, retriever = engine.names, engine.retriever.vectors
    if retriever is None:
        return ()
    heads = names.members(relation, "head", None)
    heads = heads[heads != head] if isinstance(head, int) else heads
    scores, ids = retriever.nearest(retriever.entity_vector(head)[None], k, allow=heads)
    target = retriever.entity_vector(tail)
    similar = []
    for score, other in zip(scores[0], ids[0], strict=True):
        if other < 0:
            break
        _, best = retriever.nearest(target[None], 1, allow=engine.known((int(other), relation)))
        ends = (*names.id_and_name(int(other)), names.kg.relations.id(relation), *names.id_and_name(int(best[0, 0])))
        similar.append(SimilarTriple(*ends, float(score)))
    return tuple(similar)


def _path(engine: Engine, head: EntityOrText, relation: int, tail: EntityOrText) -> tuple[Step, ...] | None:
    """A shortest path in the graph's facts that does not use the triple itself; facts of its own join a new entity."""
    graph, triples, size = engine.kg.fact_adjacency, engine.kg.facts, engine.kg.num_relations
    sources, targets = _entrances(engine, head, (relation, tail)), _entrances(engine, tail, (relation + size, head))
    if head == tail or not sources or not targets:
        return None
    triple = np.array([part if isinstance(part, int) else -1 for part in (head, relation, tail)])

    def edges_between(u: int, v: int) -> Int32:
        slot = graph.neighbour_ptr[u] + np.searchsorted(graph.neighbours_of(u), v)
        if slot == graph.neighbour_ptr[u + 1] or graph.neighbours[slot] != v:
            return np.empty(0, np.int32)
        edges = graph.edges[graph.edge_ptr[slot] : graph.edge_ptr[slot + 1]]
        return edges[(triples[edges] != triple).any(1)]

    direct = not (head in sources and tail in targets) or len(edges_between(head, tail)) > 0
    ends = (np.array(list(nodes), np.int32) for nodes in (sources, targets))
    nodes = shortest_path(graph, *ends, direct=direct).tolist()
    if not nodes:
        return None
    stops: list[tuple[int, EntityOrText]] = []  # directed relations, and where they lead
    for u, v in pairwise(nodes):
        h, r, _ = triples[edges_between(u, v)[0]].tolist()
        stops.append((r if h == u else r + size, v))
    start: EntityOrText = nodes[0]
    if (fact := sources[nodes[0]]) is not None:
        start, stops = head, [(fact, nodes[0]), *stops]
    if (fact := targets[nodes[-1]]) is not None:
        stops.append(((fact + size) % (2 * size), tail))
    return _steps(engine, start, stops)


def _strong_paths(engine: Engine, query: Query, answer: EntityOrText) -> tuple[StrongPath, ...]:
    """Those by which a path model supports the answer. Entities beyond the graph have none."""
    model, size = path_model(engine.model), engine.kg.num_entities
    entity, directed = query
    if model is None or not (isinstance(entity, int) and isinstance(answer, int)) or max(entity, answer) >= size:
        return ()
    if not model.knows_questions(engine.questions([query]))[0]:
        return ()
    paths = strongest_paths(model, entity, directed, answer, STRONG_PATHS)
    return tuple(
        StrongPath(_steps(engine, entity, [(by, stop) for _, by, stop in path.edges]), path.weight)
        for path in paths
        if path.weight > 0
    )


def _steps(engine: Engine, start: EntityOrText, stops: Sequence[tuple[int, EntityOrText]]) -> tuple[Step, ...]:
    """A path in names: from its start along directed relations to where each leads."""
    names, relations, size = engine.names, engine.kg.relations, engine.kg.num_relations
    places = [names.id_and_name(start), *(names.id_and_name(stop) for _, stop in stops)]
    return tuple(
        Step(*source, relations.id(d % size), relations.name(d % size), "out" if d < size else "in", *target)
        for (source, target), (d, _) in zip(pairwise(places), stops, strict=True)
    )


def _entrances(engine: Engine, end: EntityOrText, fact: tuple[int, EntityOrText]) -> dict[int, int | None]:
    """Where an end stands in the graph: itself, or what the facts of a new one lead to, and by what.

    The fact that the evidence is for does not count.
    """
    if isinstance(end, int) and end < engine.kg.num_entities:
        return {end: None}
    facts = engine.names.facts(end)
    return {other: by for by, other in facts if other < engine.kg.num_entities and (by, other) != fact}


def _texts(engine: Engine, query: Query, answer: EntityOrText) -> tuple[str, str]:
    """Tokens as text again: what was cut or added on the way shows. A model that reads no texts has none."""
    model = text_model(engine.model)
    if model is None:
        return "", ""
    words = engine.questions([(answer, 0)])
    batches = model.query_tokens(engine.questions([query])), model.entity_tokens(words.entities, words.new)
    question, entity = (model.texts.tokenizer.decode(tokens.ids.tolist()) for tokens in batches)
    return question, entity
