"""All texts of a graph, tokenised once; batches are laid out from them by compiled code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from satkgc.arrays import Bool, Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write
from satkgc.kg import Adjacency, KnowledgeGraph, KnownTriples, Vocabulary, as_indices
from satkgc.processes import Processes
from satkgc.progress import progress_bar
from satkgc.text.config import TextConfig
from satkgc.text.tokens import Neighbours, Outline, Ragged, Template, TokenBatch, assemble, distinct_rows
from satkgc.text.wording import Near, entity_text, full_text, relation_label, relation_text

CHUNK = 16_384  # texts handed to the tokenizer at once
NONE = np.zeros(0, np.int32)
_DTYPES: dict[str, Any] = {"I32": np.int32, "I64": np.int64, "BOOL": np.bool_}


@dataclass(frozen=True, eq=False)
class Tokens:
    """What is tokenised of a graph's entities. It is made of graph, tokenizer and settings alone, so it can be kept."""

    texts: Ragged
    names: Ragged  # none, where texts name no neighbours
    lists: Bool  # (E,) whether an entity's text names neighbours

    def save(self, file: Path) -> None:
        """Write it, all or nothing."""
        arrays = {"text_ids": self.texts.ids, "text_ptr": self.texts.ptr, "lists": self.lists}
        with atomic_write(file) as part:
            save_file(arrays | {"name_ids": self.names.ids, "name_ptr": self.names.ptr}, part)

    @classmethod
    def open(cls, file: Path) -> Tokens:
        """What `save` wrote, by memory map: texts that are not read take no memory."""
        try:
            read = _map_arrays(file)
            texts, names = (Ragged(read[f"{kind}_ids"], read[f"{kind}_ptr"]) for kind in ("text", "name"))
            return cls(texts, names, read["lists"])
        except (SafetensorError, KeyError) as error:
            raise ValueError(f"{file.name}: {error}") from error


class Texts:
    """Texts of a graph's entities, names and directed relations as tokens, and the batches made of them.

    Short texts name neighbours of the training graph; of an entity that is not in it, those of the inference split,
    which no text that is trained on names. In training `exclude` has an entity for each row, the answer, which must not
    be among them; where they are named by relation, `exclude_relation` excludes it under that one only. Rows with
    `drop_neighbours` name none.
    """

    def __init__(
        self,
        kg: KnowledgeGraph,
        tokenizer: Any,
        config: TextConfig | None = None,
        tokens: Tokens | None = None,
        processes: Processes | None = None,  # that share the tokenising; each of them has all tokens then
    ) -> None:
        self.config = config = config or TextConfig()
        self.tokenizer = tokenizer
        self.num_relations = kg.num_relations
        self._one, self._two = Template.learn(tokenizer, pair=False), Template.learn(tokenizer, pair=True)
        self._has_types = "token_type_ids" in tokenizer.model_input_names
        worded = _directed(kg.relations, lambda id, name, inverse: relation_text(id, name, config, inverse))
        self._relations = self._tokenise(worded, cut=False)
        self._label_words = _directed(kg.relations, relation_label) if config.neighbours_per_relation else []
        self._labels = self._tokenise(f" {label}" for label in self._label_words)
        self._separators = self._tokenise((" ;", " :", " ,"))
        self._neighbours = _neighbours(kg, config)
        self._check_relations(kg.relations)
        self.tokens = tokens or self._entity_tokens(kg, processes)
        self._texts, self._names, self._lists = self.tokens.texts, self.tokens.names, self.tokens.lists

    def queries(
        self,
        entities: Any,
        directed: Any,
        exclude: Any = None,
        exclude_relation: Any = None,
        drop_neighbours: Any = None,
    ) -> TokenBatch:
        """Texts of (entity, directed relation): the head's text, then the relation's as the second segment."""
        return self._batch(*self._rows(entities, directed, exclude, exclude_relation, drop_neighbours))

    def entities(
        self, entities: Any, exclude: Any = None, exclude_relation: Any = None, drop_neighbours: Any = None
    ) -> TokenBatch:
        """Texts of entities."""
        return self._batch(*self._rows(entities, None, exclude, exclude_relation, drop_neighbours))

    def outline(
        self,
        entities: Any,
        directed: Any = None,
        exclude: Any = None,
        exclude_relation: Any = None,
        drop_neighbours: Any = None,
    ) -> Outline:
        """The distinct ones of such texts, with `directed` of queries, before they are laid out.

        Rows of one entity have one text unless the relation, or what is left out, makes a difference; two entities of
        the same words count as two.
        """
        given = self._rows(entities, directed, exclude, exclude_relation, drop_neighbours)
        _, ptr, _, lacking = self._assemble(*given, write=False)
        _, rows, lists, _, entities, directed, exclude, exclude_relation = given
        nothing = np.full(len(entities), -1, np.int32)
        parts = [entities, nothing if directed is None else directed, lists]
        parts += [nothing if part is None else np.where(lacking, part, -1) for part in (exclude, exclude_relation)]
        first, text_of = distinct_rows(np.stack(parts, 1).astype(np.int32))

        def lay_out(places: Int64) -> TokenBatch:
            at = first[places]
            chosen = [None if part is None else part[at] for part in (entities, directed, exclude, exclude_relation)]
            return self._batch(given[0], rows[at], lists[at], given[3], *chosen)

        return Outline(np.diff(ptr)[first], text_of, lay_out)

    def new_entities(
        self, pairs: Sequence[tuple[str, str]], directed: Any = None, near: Sequence[Near] | None = None
    ) -> TokenBatch:
        """Texts of (name, description) pairs the graph never had; with `directed`, of queries about them.

        `near` holds for each what is known of it: directed relations and the names they lead to, in order. Texts say
        so where those of the graph's entities would.
        """
        texts = [
            full_text(name, description, facts, self.config, lambda directed: self._label_words[directed])
            for (name, description), facts in zip(pairs, near or ((),) * len(pairs), strict=True)
        ]
        rows = np.arange(len(texts), dtype=np.int32)
        directed = self._directed(directed, len(texts))
        lists = np.zeros(len(texts), np.bool_)
        return self._batch(self._tokenise(texts), rows, lists, NO_NEIGHBOURS, rows, directed)

    def new_entity(self, name: str, description: str = "", near: Near = ()) -> TokenBatch:
        """The text of one entity the graph never had."""
        return self.new_entities([(name, description)], near=[near])

    def _entity_tokens(self, kg: KnowledgeGraph, processes: Processes | None) -> Tokens:
        config, processes = self.config, processes or Processes()
        own = processes.share(kg.num_entities)
        columns = (kg.entities.names, kg.entities.descriptions)
        names, descriptions = (column.slice(own.start, own.stop - own.start) for column in columns)
        # Texts that no neighbours follow come after the others. A name among others follows a space, which some
        # tokenizers make part of the token.
        kinds = [self._entity_texts(names, descriptions)]
        kinds += [self._entity_texts(names, descriptions, whole=True)] if config.reads_whole else []
        kinds += [(f" {name.strip()}" for name in _strings(names))] if config.max_neighbours else []
        with progress_bar(processes.first) as progress:
            task = progress.add_task("tokenising", total=len(names) * len(kinds))

            def counted(texts: Iterable[str]) -> Iterator[str]:
                for text in texts:
                    yield text
                    progress.advance(task)

            tokenised = [self._share(self._tokenise(counted(kind)), kg.num_entities, processes) for kind in kinds]
        named = tokenised.pop() if config.max_neighbours else Ragged(NONE, np.zeros(1, np.int64))
        if not config.max_neighbours:
            return Tokens(_concatenate(tokenised), named, np.zeros(kg.num_entities, np.bool_))
        short = np.fromiter(map(config.names_neighbours, _strings(kg.entities.descriptions)), np.bool_)
        return Tokens(_concatenate(tokenised), named, short & _accompanied(self._neighbours, kg.num_entities))

    def _share(self, own: Ragged, rows: int, processes: Processes) -> Ragged:
        """All rows, of which each process has tokenised its own."""
        ids, lengths = processes.gather_ragged(own.ids, np.diff(own.ptr), rows)
        return Ragged(ids, np.concatenate([[0], np.cumsum(lengths)]))

    def _rows(
        self, entities: Any, directed: Any, exclude: Any, exclude_relation: Any, drop_neighbours: Any
    ) -> tuple[Ragged, Int32, Bool, Neighbours, Int32, Any, Any, Any]:
        """What texts of the graph's entities are laid out from: the arguments of `_batch`."""
        entities = _indices("entities", entities, len(self._lists))
        directed = self._directed(directed, len(entities))
        _check_rows("exclude", exclude, len(entities))
        _check_rows("exclude_relation", exclude_relation, len(entities))
        _check_rows("drop_neighbours", drop_neighbours, len(entities))
        lists = self._lists[entities]
        if drop_neighbours is not None:
            lists &= ~drop_neighbours
        rows = np.where(lists, entities, entities + len(self._lists)) if self.config.reads_whole else entities
        return self._texts, rows, lists, self._neighbours, entities, directed, exclude, exclude_relation

    def _batch(self, *given: Any) -> TokenBatch:
        ids, ptr, types, _ = self._assemble(*given)
        return TokenBatch(ids, ptr, types if self._has_types else None)

    def _directed(self, directed: Any, rows: int) -> Any:
        _check_rows("directed relations", directed, rows)
        return None if directed is None else _indices("directed relations", directed, 2 * self.num_relations)

    def _assemble(
        self,
        texts: Ragged,
        rows: Any,  # where a text is among them
        lists: Bool,  # whether neighbours follow it
        neighbours: Neighbours,
        entities: Any,
        directed: Any,
        exclude: Any = None,
        exclude_relation: Any = None,
        write: bool = True,
    ) -> Any:
        if not len(neighbours.relations):  # names alone: nothing says by which relation
            exclude_relation = None
        return assemble(
            _int32(entities),
            _int32(directed),
            _int32(rows),
            lists,
            _int32(exclude),
            _int32(exclude_relation),
            neighbours,
            texts,
            self._names,
            self._labels,
            self._separators,
            self._relations,
            self._one if directed is None else self._two,
            self.config.max_tokens,
            self.config.max_neighbours,
            write,
        )

    def _entity_texts(self, names: Any, descriptions: Any, whole: bool = False) -> Iterator[str]:
        for name, description in zip(_strings(names), _strings(descriptions), strict=True):
            yield entity_text(name, description, self.config, whole)

    def _tokenise(self, texts: Iterable[str], cut: bool = True) -> Ragged:
        """Rows of tokens without special tokens; those past max_tokens are never needed where they may be cut."""
        rows: list[Int32] = []
        lengths: list[int] = [0]
        limit = self.config.max_tokens if cut else None
        iterator = iter(texts)
        while chunk := list(islice(iterator, CHUNK)):
            encoded = self.tokenizer(
                chunk, add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False, verbose=False
            )["input_ids"]
            encoded = [row[:limit] for row in encoded]
            lengths.extend(map(len, encoded))
            rows.append(np.fromiter(chain.from_iterable(encoded), np.int32))
        return Ragged(np.concatenate([NONE, *rows]), np.cumsum(lengths, dtype=np.int64))

    def _check_relations(self, relations: Vocabulary) -> None:
        lengths = np.diff(self._relations.ptr)
        need = self._two.size + 1 + int(lengths.max(initial=0))
        if need > self.config.max_tokens:
            longest = relations.id(int(lengths.argmax()) % self.num_relations)
            raise SatkgcError(
                f"relation {longest!r} and one word of a head need {need} tokens, model.text.max_tokens is "
                f"{self.config.max_tokens}",
                remedy="raise model.text.max_tokens or shorten the relation's name; relations are never cut",
            )


def _map_arrays(file: Path) -> dict[str, Any]:
    """The arrays of a safetensors file; what would be written to them stays here."""
    with safe_open(file, "numpy") as whole:  # refuses a damaged one
        names = list(whole.keys())
    with file.open("rb") as stream:
        start = 8 + int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(start - 8))
    arrays = {}
    for name in names:
        kind, (first, last) = _DTYPES[header[name]["dtype"]], header[name]["data_offsets"]
        shape = tuple(header[name]["shape"])
        empty = first == last  # which cannot be mapped
        arrays[name] = np.empty(shape, kind) if empty else np.memmap(file, kind, "c", start + first, shape)
    return {name: array.view(np.ndarray) for name, array in arrays.items()}


def _concatenate(parts: Sequence[Ragged]) -> Ragged:
    """Rows after rows."""
    lengths = np.concatenate([np.diff(part.ptr) for part in parts])
    ids = parts[0].ids if len(parts) == 1 else np.concatenate([part.ids for part in parts])
    return Ragged(ids, np.concatenate([[0], np.cumsum(lengths)]))


def _indices(name: str, numbers: Any, size: int) -> Int32:
    """Places below `size`; compiled code trusts them, and would read stray memory beyond."""
    places = as_indices(numbers)
    if places.ndim != 1:
        raise SatkgcError(f"{name} of the shape {places.shape}", remedy="give a row of indices")
    wrong = places[(places < 0) | (places >= size)]
    if len(wrong):
        remedy = f"give indices from 0 to {size - 1}"
        raise SatkgcError(f"there is no {wrong[0]} among {size} {name}", remedy=remedy)
    return places


def _check_rows(name: str, values: Any, rows: int) -> None:
    if values is not None and len(values) != rows:
        raise SatkgcError(f"{len(values)} {name} for {rows} texts", remedy="give one for each")


def _int32(numbers: Any) -> Int32:
    return NONE if numbers is None else np.array(numbers, np.int32)


def _read_only(ptr: Any, entities: Any, relations: Any) -> Neighbours:
    """All neighbours are read-only, as a graph's are: the kernel is compiled for each kind of array."""
    neighbours = Neighbours(ptr.astype(np.int64), entities.astype(np.int32), relations.astype(np.int32))
    for array in neighbours:
        array.flags.writeable = False
    return neighbours


NO_NEIGHBOURS = _read_only(NONE, NONE, NONE)


def _neighbours(kg: KnowledgeGraph, config: TextConfig) -> Neighbours:
    if not config.max_neighbours:
        return NO_NEIGHBOURS
    by_relation = config.neighbours_per_relation > 0
    trained = _by_relation(kg, kg.known_train) if by_relation else _by_name(kg.adjacency)
    if not len(kg.inference):
        return trained
    facts = _by_relation(kg, kg.known_facts) if by_relation else _by_name(kg.fact_adjacency)
    return _join(trained, facts, kg.adjacency.degree == 0)


def _join(trained: Neighbours, facts: Neighbours, untrained: Bool) -> Neighbours:
    """The neighbours in training, and for entities that have none there those by facts."""
    counts = np.diff(trained.ptr), np.where(untrained, np.diff(facts.ptr), 0)  # (E,)
    order = np.argsort(np.concatenate([np.repeat(np.arange(len(count)), count) for count in counts]), kind="stable")
    rows = np.repeat(untrained, np.diff(facts.ptr))
    entities = np.concatenate([trained.entities, facts.entities[rows]])[order]
    relations = NONE
    if len(trained.relations):
        relations = np.concatenate([trained.relations, facts.relations[rows]])[order]
    return _read_only(np.concatenate([[0], np.cumsum(counts[0] + counts[1])]), entities, relations)


def _by_name(adjacency: Adjacency) -> Neighbours:
    return Neighbours(adjacency.neighbour_ptr, adjacency.neighbours, NO_NEIGHBOURS.relations)


def _by_relation(kg: KnowledgeGraph, known: KnownTriples) -> Neighbours:
    degrees = np.diff(known.head_ptr), np.diff(known.tail_ptr)
    owner = np.concatenate([np.repeat(np.arange(kg.num_entities), degree) for degree in degrees])
    order = np.argsort(owner, kind="stable")  # outgoing triples come first, as their relations do
    relations = np.concatenate([known.head_relations, known.tail_relations + kg.num_relations])[order]
    others = np.concatenate([known.head_tails, known.tail_heads])[order]
    ptr = np.concatenate([[0], np.cumsum(degrees[0] + degrees[1])])
    return _read_only(ptr, others, relations)


def _accompanied(neighbours: Neighbours, entities: int) -> Bool:
    """Which entities have a neighbour other than themselves."""
    if not len(neighbours.ptr):
        return np.zeros(entities, np.bool_)
    owner = np.repeat(np.arange(entities, dtype=np.int32), np.diff(neighbours.ptr))
    others: Bool = np.bincount(owner[neighbours.entities != owner], minlength=entities) > 0
    return others


def _strings(column: Any) -> Iterator[str]:
    """An Arrow column's values, a slice at a time: millions are never Python strings at once."""
    for start in range(0, len(column), CHUNK):
        yield from column.slice(start, CHUNK).to_pylist()


def _directed(relations: Vocabulary, wording: Callable[[str, str, bool], str]) -> list[str]:
    """Texts of all 2R directed relations, the inverse ones after the others."""
    pairs = list(zip(relations.ids.to_pylist(), relations.names.to_pylist(), strict=True))
    return [wording(id, name, inverse) for inverse in (False, True) for id, name in pairs]
