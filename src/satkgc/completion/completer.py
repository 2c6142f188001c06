"""Questions to a trained model: load a run once, ask as often as you like, from any thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from satkgc.arrays import Float32
from satkgc.completion.answer import (
    Answer,
    Doubt,
    Entity,
    EntityDetail,
    EntityRef,
    EntityType,
    Evidence,
    Neighbour,
    NewEntity,
    Question,
    Relation,
    RelationShare,
    TriplePart,
)
from satkgc.completion.bulk import ask_on_ray, check_engine, encode_on_ray
from satkgc.completion.checking import check_count, check_doubts_file, doubt_statement, find_doubts, write_doubts
from satkgc.completion.classification import Classification, classify
from satkgc.completion.duplicates import (
    Duplicate,
    check_duplicates_file,
    check_limits,
    find_duplicates,
    write_duplicates,
)
from satkgc.completion.engine import Engine
from satkgc.completion.evidence import find_evidence
from satkgc.completion.experts import text_model
from satkgc.completion.info import CompleterInfo
from satkgc.completion.prepare import (
    OnProgress,
    candidate_recall,
    index_checksum,
    is_prepared,
    load_model,
    open_prepared,
    prepare,
    prepare_facts,
)
from satkgc.completion.proposals import propose
from satkgc.completion.quality import about_run
from satkgc.completion.retriever import FusedRetriever, IndexRetriever
from satkgc.completion.review import decided_triples
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, published_negatives, read_logic, read_negatives
from satkgc.models import NewEntityText
from satkgc.training import RunFolder

NEAREST = 64  # entities whose relations are suggested


class Completer:
    """A loaded run: model, graph, index, calibration. All methods may be called from several threads."""

    def __init__(self, engine: Engine, run: Path) -> None:
        self._engine, self.run = engine, run
        self._adding = threading.Lock()

    @classmethod
    def load(
        cls,
        run: str | os.PathLike[str],
        device: str = "auto",
        on_progress: OnProgress = lambda line: None,
    ) -> Completer:
        """Open a run folder. What it needs to answer is made on the first call and kept; `on_progress` gets a line now
        and then."""
        opened = RunFolder.load(run)
        model = load_model(opened, device)
        if is_prepared(opened.folder):
            return cls(open_prepared(opened.folder, model), opened.folder)
        return cls(prepare(opened.folder, model, on_progress=on_progress), opened.folder)

    @classmethod
    def prepare(
        cls,
        run: str | os.PathLike[str],
        device: str = "auto",
        index: str = "exact",
        uri: str | None = None,
        engine: str = "local",
    ) -> dict[str, Any]:
        """Make vectors, index (in a database at `uri`) and calibration anew, by an engine; returns what it measured."""
        check_engine(engine)
        opened = RunFolder.load(run)
        encode = encode_on_ray(opened.folder, device) if engine == "ray" else None
        prepared = prepare(opened.folder, opened.model(device), index, uri=uri, encode=encode)
        return prepare_facts(prepared, opened.folder, index)

    @property
    def kg(self) -> KnowledgeGraph:
        """The run's graph."""
        return self._engine.kg

    @property
    def calibrated(self) -> bool:
        """Whether answers that are entities carry probabilities."""
        return self._engine.calibration.entities is not None

    def threshold(self, precision: float) -> float:
        """The lowest probability above which held-out answers were right this often."""
        if self._engine.calibration.entities is None:
            raise SatkgcError("this run has no probabilities", where=self.run, remedy="leave the precision out")
        return self._engine.calibration.entities.threshold(precision)

    def reads_facts(self, description: str = "") -> bool:
        """Whether facts of a new entity with this description reach the model: its texts name neighbours."""
        model = text_model(self._engine.model)
        return model is not None and bool(model.config.text.names_neighbours(description))

    def tails(self, head: EntityRef, relation: str, k: int = 10, **filters: object) -> list[Answer]:
        """Answers to (head, relation, ?), best first; the filters are those of `Question`."""
        return self.ask([Question(head=head, relation=relation, k=k, **filters)])[0]  # type: ignore[arg-type]

    def heads(self, relation: str, tail: EntityRef, k: int = 10, **filters: object) -> list[Answer]:
        """Answers to (?, relation, tail), best first."""
        return self.ask([Question(relation=relation, tail=tail, k=k, **filters)])[0]  # type: ignore[arg-type]

    def relations(self, head: EntityRef, tail: EntityRef, k: int = 10, **filters: object) -> list[Answer]:
        """Answers to (head, ?, tail), best first: `Answer.id` and `.name` are the relation's.

        The score is the mean of those of (head, relation, tail) asked from both ends; the order is that of the
        probability, which depends on how frequent the relation is as well.
        """
        return self.ask([Question(head=head, tail=tail, k=k, **filters)])[0]  # type: ignore[arg-type]

    def ask(self, questions: Sequence[Question]) -> list[list[Answer]]:
        """Answer many questions at once: their distinct queries are encoded in one go."""
        return self._engine.ask(questions)

    def ask_each(self, questions: Sequence[Question]) -> list[list[Answer] | SatkgcError]:
        """As `ask`, but a question that cannot be answered has its error in the place of answers."""
        return self._engine.ask_each(questions)

    def texts_read(self, question: Question) -> int:
        """How many texts have to be encoded to answer it: one, but two a relation where the relation is asked for."""
        return 2 * self.kg.num_relations if question.relation is None else 1

    def evidence(
        self, head: EntityRef, relation: str, tail: EntityRef, k: int = 5, asked: TriplePart = "tail"
    ) -> Evidence:
        """Why (head, relation, tail): similar known triples, a shortest path, the texts that were compared.

        Score and probability are those of the tail among the answers to (head, relation, ?); `asked` may be "head" or
        "relation" instead.
        """
        if asked not in get_args(TriplePart):
            raise SatkgcError(f"asked is {asked!r}", remedy="say head, relation or tail")
        engine = self._engine
        parts = engine.resolve(head), engine.names.relation(relation), engine.resolve(tail)
        return find_evidence(engine, *parts, k, asked)

    def propose(
        self,
        out: str | Path,
        n: int = 1000,
        relations: Sequence[str] | None = None,
        min_probability: float | None = None,
        second_answers: bool = False,
        exclude: Sequence[str] = (),
        typed: bool = False,
        implied: bool = False,
        logic: str | Path | None = None,
        type: str | None = None,
        engine: str = "local",
    ) -> int:
        """Write the `n` most likely missing triples of the graph, or of some relations, to .tsv, .csv, .parquet or .nt.

        Where a relation gives nearly every entity one answer, those that have it get no second one, unless
        `second_answers` are asked for; `typed`, only entities that the graph has at that end of the relation already
        are proposed there; with a `type`, only triples that have an entity of it at one end; relations to `exclude`
        are left out. What the graph implies already, what would close a cycle in a hierarchy, and one of two triples
        that say the same are dropped, unless `implied`: by what `logic` says of relations, a file of `satkgc kg
        inspect --logic`, else by what the graph shows of them. What was accepted or rejected in a review of this run,
        or rejected in the one that it was trained on from, is not proposed again.

        A call that was stopped goes on when it is made again. With the engine "ray", workers ask. Returns the count.
        """
        check_engine(engine)
        names = self._engine.names
        if isinstance(relations, str) or isinstance(exclude, str):
            raise SatkgcError("relations are given as a text", remedy="give a list of ids or names")
        chosen = set(range(self.kg.num_relations) if relations is None else map(names.relation, relations))
        chosen -= set(map(names.relation, exclude))
        if not chosen:
            raise SatkgcError("no relation is left to propose", remedy="leave fewer out")
        signature, properties = self._signature(), None
        if not implied:
            properties = self._engine.logic if logic is None else read_logic(self.kg, Path(logic))
        elif logic is not None:
            raise SatkgcError("implied triples are kept, and a logic is given", remedy="leave one of the two out")
        options = min_probability, signature, second_answers, typed, properties
        decided = decided_triples(self.run, self.kg, properties)
        ask = ask_on_ray(self.run, str(self._engine.model.device)) if engine == "ray" else None
        return propose(self._engine, Path(out), n, sorted(chosen), *options, decided, type, ask)

    def check(
        self,
        n: int = 20,
        relations: Sequence[str] | None = None,
        split: str = "train",
        out: str | Path | None = None,
        entity: str | None = None,
        most: int | None = None,
    ) -> list[Doubt]:
        """The `n` statements of a split that are doubted most, or of some relations or of one entity: contradictions
        first, then what the model finds least likely, asked from both ends as if the graph did not have it. Where
        there are more than `most` to look at, none is.

        With `out`, a .csv or .json file, they are written too, and a call that was stopped goes on when it is made
        again.
        """
        if isinstance(relations, str):
            raise SatkgcError("relations are given as a text", remedy="give a list of ids or names")
        check_count(n)
        chosen = None if relations is None else [self._engine.names.relation(relation) for relation in relations]
        about = None if entity is None else self._engine.names.entity(entity)
        if out is None:
            return find_doubts(self._engine, split, n, chosen, entity=about, most=most)
        out = Path(out)
        check_doubts_file(out, n)
        state = out.with_name(out.name + ".state.npz")
        doubts = find_doubts(self._engine, split, n, chosen, state, self._signature(), about, most)
        write_doubts(out, doubts)
        state.unlink(missing_ok=True)
        return doubts

    def duplicates(self, n: int = 1000, min_score: float = 0.5, out: str | Path | None = None) -> list[Duplicate]:
        """The `n` pairs of entities that are most likely the same thing, by names, vectors and shared neighbours.

        With `out`, a .csv file, they are written too, with a column to accept them in; see `satkgc accept`.
        """
        check_limits(n, min_score)
        if out is not None:
            check_duplicates_file(Path(out), n, min_score)
        duplicates = find_duplicates(self._engine, n, min_score)
        if out is not None:
            write_duplicates(Path(out), duplicates)
        return duplicates

    def doubt(self, head: str, relation: str, tail: str) -> Doubt:
        """What speaks against one statement, in the graph or not: each end is asked for as if the graph did not have
        it, and its probability is that of the less likely end."""
        names = self._engine.names
        return doubt_statement(self._engine, names.entity(head), names.relation(relation), names.entity(tail))

    def knows(self, head: str, relation: str, tail: str) -> bool:
        """Whether the graph has a statement, in any split."""
        names = self._engine.names
        return self._engine.is_known(names.entity(head), names.relation(relation), names.entity(tail))

    def classify(
        self, valid_negatives: str | Path | None = None, test_negatives: str | Path | None = None
    ) -> Classification:
        """How well test triples are told from wrong ones, by thresholds fitted on validation triples; the wrong ones
        are read from files of TSV, or are those that were published with the graph."""
        negatives = [
            published_negatives(self.kg, split) if file is None else read_negatives(self.kg, Path(file))
            for split, file in (("valid", valid_negatives), ("test", test_negatives))
        ]
        for split in ("valid", "test"):
            if not len(self.kg.split(split)):
                raise SatkgcError(f"{self.kg.name} has no {split} triples", remedy="make a run whose graph has some")
        return classify(self._engine, (self.kg.valid, self.kg.test), (negatives[0], negatives[1]))

    def search(self, text: str, limit: int = 10) -> list[Entity]:
        """Entities whose id or name begins with the text or looks like it, best first."""
        return self._engine.names.search(text, limit)

    def entity(self, entity: str, limit: int = 50, offset: int = 0) -> EntityDetail:
        """An entity by id or name, with its neighbours in the training graph, in the inference split and by facts of
        those added since, from the one at `offset` on."""
        names, relations, size = self._engine.names, self.kg.relations, self.kg.num_relations
        index = names.entity(entity)
        shown = names.describe(index)
        edges = self.kg.fact_adjacency.triples_at(index) if index < self.kg.num_entities else np.empty(0, np.int32)
        links = [
            (r, t) if h == index else (r + size, h)
            for h, r, t in self.kg.facts[edges[offset : offset + limit]].tolist()
        ]
        late = names.facts(index)
        neighbours = []
        for directed, other in [*links, *late[max(0, offset - len(edges)) :]][:limit]:
            r = directed % size
            way: Literal["out", "in"] = "out" if directed < size else "in"
            neighbours.append(Neighbour(relations.id(r), relations.name(r), way, names.id(other), names.name(other)))
        total = len(edges) + len(late)
        own = set(self._engine.consistency.types.of(index))
        types = tuple(type for i, type in self._types if i in own)
        return EntityDetail(shown.id, shown.name, shown.description, shown.degree, total, tuple(neighbours), types)

    def types(self) -> list[EntityType]:
        """The types that the graph states of its entities, most frequent first; a question can ask for one alone."""
        return [type for _, type in self._types]

    @cached_property
    def _types(self) -> list[tuple[int, EntityType]]:
        names, counts = self._engine.names, self._engine.consistency.types.counts
        return [(t, EntityType(names.id(t), names.name(t), count)) for t, count in counts]

    def relation_list(self) -> list[Relation]:
        """All relations of the graph, most frequent first."""
        names = self._engine.names
        return [names.describe_relation(int(r)) for r in np.argsort(-names.frequency, kind="stable")]

    def suggest_relations(self, entity: EntityRef, asked: Literal["head", "tail"] = "tail") -> list[RelationShare]:
        """Relations that make sense for an entity: those that the entities most like it have, most frequent first.

        A probability says which answer is right, given that the question has one. Asked for all relations at once, a
        person wants no antonym of a dog: what similar entities never have is left out. `asked` says which side of the
        relation is the question's, so that the entity is on the other. Without vectors all entities are looked at.
        """
        retriever, known, kg = self._engine.retriever, self.kg.known_facts, self.kg
        resolved = self._engine.resolve(entity)
        by_tail = known.tail_ptr, known.tail_relations
        ptr, relations = by_tail if asked == "head" else (known.head_ptr, known.head_relations)
        count, counts = kg.num_entities, np.zeros(kg.num_relations, np.int64)
        if (vectors := retriever.vectors) is not None:
            _, ids = vectors.nearest(vectors.entity_vector(resolved)[None], min(NEAREST, len(vectors)))
            near = ids[0][(ids[0] >= 0) & (ids[0] < kg.num_entities)]  # an entity of the graph finds itself
            for other in near:
                counts[np.unique(relations[ptr[other] : ptr[other + 1]])] += 1
            count = len(near)
        elif len(relations):
            first = np.append(True, relations[1:] != relations[:-1])  # of an entity's triples with the relation
            first[ptr[:-1][ptr[:-1] < len(relations)]] = True
            counts += np.bincount(relations[first], minlength=kg.num_relations)
        order = np.argsort(-counts, kind="stable").tolist()
        shares = [(kg.relations.id(r), kg.relations.name(r), counts[r] / count) for r in order if counts[r]]
        return [RelationShare(id, name, float(share)) for id, name, share in shares]

    def examples(self, count: int = 7) -> list[Entity]:
        """Entities to begin with: heads of the most frequent relation, which a page offers first, spread over their
        best-connected twentieth: the very first are too general to be good questions."""
        names, degree = self._engine.names, self.kg.adjacency.degree
        heads = names.members(int(names.frequency.argmax()), "head", None)
        heads = heads[heads < self.kg.num_entities]
        order = heads[np.argsort(-degree[heads], kind="stable")][: max(count, len(heads) // 20)]
        chosen = order[np.linspace(0, len(order) - 1, min(count, len(order))).astype(int)]
        return [names.describe(int(i)) for i in chosen]

    def info(self) -> CompleterInfo:
        """What is loaded, how good it is, and entities to begin with."""
        kg, examples = self.kg, tuple(self.examples())
        sizes = kg.num_entities, kg.num_relations, len(kg.train)
        return CompleterInfo(kg.name, *sizes, self.calibrated, self.reads_facts(), examples, **self._about)

    @cached_property
    def _about(self) -> dict[str, Any]:  # read once: another version may take the folder's place
        return about_run(RunFolder.load(self.run), self.kg) | {"candidates": candidate_recall(self.run)}

    def vectors(self, start: int = 0, stop: int | None = None) -> Float32:
        """Vectors of the graph's entities from `start` to `stop`, of length one.  # (stop - start, dim)"""
        stop = self.kg.num_entities if stop is None else min(stop, self.kg.num_entities)
        return self._vector_retriever().index.fetch(np.arange(start, stop, dtype=np.int32))

    def add(self, entity: NewEntity) -> str:
        """Put a new entity into the loaded index, so that it can be an answer; returns its id. Kept in memory only."""
        names, retriever = self._engine.names, self._engine.retriever
        if not isinstance(retriever, FusedRetriever):
            retriever = self._vector_retriever()
        text, vectors = self._engine.resolve(entity), retriever.vectors
        assert isinstance(text, NewEntityText)
        vector = None if vectors is None else vectors.entity_vector(text)
        with self._adding:
            # The name first: a search in another thread may find only what can be named.
            new = names.add(entity)
            index = self.kg.num_entities + len(names.added) - 1
            if vectors is not None and vector is not None:
                vectors.index.add(np.array([index], np.int32), vector[None])
            if isinstance(retriever, FusedRetriever):
                retriever.add(text)
            names.add_facts(index)
        return new.id

    def _signature(self) -> str:
        """Of model and graph: an update changes the graph alone."""
        return f"{index_checksum(self.run)} {self.kg.fingerprint}"

    def _vector_retriever(self) -> IndexRetriever:
        if not isinstance(self._engine.retriever, IndexRetriever):
            what = f"{type(self._engine.model).__name__} has no entity vectors"
            raise SatkgcError(what, where=self.run, remedy="use a run of a model that has them, such as a text model")
        return self._engine.retriever
