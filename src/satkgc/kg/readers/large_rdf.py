"""RDF that is larger than memory, as the graph that `rdf_nodes.py` would make of it: the same ids, the same arrays.

Statements are staged as text with their place in the source. Nodes, the best texts of each and the triples that are
kept come out of queries. Blank nodes without a name are followed in memory, with the statements that they are in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.pieces import TextWriter
from satkgc.kg.readers.assemble import finish
from satkgc.kg.readers.blank_nodes import BlankNodes
from satkgc.kg.readers.columns import OTHER_NAMES, with_other_names
from satkgc.kg.readers.options import ReadOptions, excluded_relations
from satkgc.kg.readers.rdf_nodes import RdfNodes
from satkgc.kg.readers.staging import Staging
from satkgc.kg.vocabulary import Vocabulary, name_from_id

ROWS = 1 << 17  # staged at once
ROLES = {"name": 0, "other": 1, "description": 2}
TEXT = pa.schema(
    [("node", pa.string()), ("role", pa.int8()), ("goodness", pa.int64()), ("text", pa.string()), ("place", pa.int64())]
)
BEST = """
CREATE TABLE best AS SELECT node, arg_min(text, goodness) FILTER (role = 0) AS name,
  list(text ORDER BY goodness) FILTER (role = 1) AS others, arg_min(text, goodness) FILTER (role = 2) AS description
FROM {texts} GROUP BY node
"""
NAMELESS = """
CREATE TABLE nameless AS SELECT DISTINCT id FROM (SELECT head AS id FROM {train} UNION ALL SELECT tail FROM {train})
WHERE starts_with(id, '_:') AND id NOT IN (SELECT node FROM best WHERE name IS NOT NULL)
"""
LOOSE = (
    "SELECT * FROM {train} WHERE head IN (SELECT id FROM nameless) OR tail IN (SELECT id FROM nameless) ORDER BY place"
)
# A node is an entity if a triple that is kept joins it, or it has a text and is no relation.
ENTITIES = """
SELECT ends.id, name, others, description FROM (
  SELECT id, min(place) AS first FROM (
    SELECT head AS id, 2 * place AS place, {all} AS kept FROM {train}
    UNION ALL SELECT tail, 2 * place + 1, {all} FROM {train}
    UNION ALL SELECT node, 2 * place, role >= 0 AND node NOT IN (SELECT id FROM predicates) FROM {texts}
    {more}
  ) GROUP BY id HAVING bool_or(kept)
) AS ends LEFT JOIN best ON ends.id = best.node
WHERE NOT (starts_with(ends.id, '_:') AND name IS NULL) ORDER BY first
"""
KEPT = """
UNION ALL SELECT head, 9223372036854775807, TRUE FROM {kept}
UNION ALL SELECT tail, 9223372036854775807, TRUE FROM {kept}
"""
Texts = tuple[str | None, list[str] | None, str | None]  # name, other names, description


class StagedNodes(RdfNodes):
    """The statements, on the disk."""

    def __init__(self, shown: str, options: ReadOptions, area: Staging) -> None:
        super().__init__(shown, options)
        self._area, self._place = area, 0
        self._rows: list[tuple[str, int, str, int]] = []
        self._lines: list[tuple[str, int, int, str, int]] = []
        self._words: dict[str, Texts] = {}  # of relations

    def _add_text(self, subject: Any, role: tuple[str, int], literal: Any) -> None:
        text = " ".join(literal.value.split())
        key = self._key(subject)
        self._check_length(key)
        if text and (rank := self._texts.rank(role, literal.language)) is not None:
            self._lines.append((key, ROLES[role[0]], (rank << 40) + self._place, text, self._place))
        else:
            self._lines.append((key, -1, 0, "", self._place))  # seen here, which numbers it
        self._place += 1
        if len(self._lines) >= ROWS:
            self._flush()

    def _add_triple(self, subject: Any, predicate: str, object: Any) -> None:
        head, tail = self._key(subject), self._key(object)
        if len(head) + len(tail) > 1024:
            self._check_length(head)
            self._check_length(tail)
        self._rows.append((head, self._index(predicate, self._relations), tail, self._place))
        self._place += 1
        if len(self._rows) >= ROWS:
            self._flush()

    def _flush(self) -> None:
        self._area.add("train", [list(column) for column in zip(*self._rows, strict=True)] or [[]] * 4)
        self._area.add("texts", [list(column) for column in zip(*self._lines, strict=True)] or [[]] * 5, TEXT)
        self._rows, self._lines = [], []

    def graph(self, name: str, options: ReadOptions) -> KnowledgeGraph:
        """Choose the entities, number them and put the graph together."""
        self._texts.refuse_unused([*self._literals, *self._relations], self.shown)
        self._flush()
        area, run = self._area, self._area.database.execute
        texts, train = f"(SELECT * FROM {area.table('texts')} WHERE role >= 0)", area.table("train")
        run(BEST.format(texts=texts))
        run(NAMELESS.format(train=train))
        loose = list(area.query(LOOSE.format(train=train)))
        made = self._make(name, pa.Table.from_batches(loose) if loose else None)
        source = train
        if loose:
            area.add("made", [list(column) for column in zip(*made, strict=True)] or [[]] * 4)
            left = f"SELECT * FROM {train} ANTI JOIN nameless ON head = id"
            left = f"SELECT head, relation, tail, place FROM ({left}) AS t ANTI JOIN nameless ON tail = nameless.id"
            source = f"({left} UNION ALL SELECT head, relation, tail, place FROM {area.table('made')})"
        excluded = self._exclude(source, options) if options.exclude else []
        kept = "train"
        if loose or excluded:
            kept, chosen = "kept", ", ".join(map(str, [-1, *excluded]))
            text = f"SELECT head, relation, tail, place FROM {source} WHERE relation NOT IN ({chosen}) ORDER BY place"
            area.add(kept, [[]] * 4)
            for batch in area.query(text):
                area.add(kept, batch.columns)
        if not area.rows[kept]:
            remedy = "give a file with links between IRIs"
            raise SatkgcError("no statement in it joins two entities", where=self.shown, remedy=remedy)
        self._read_words()
        area.database.register("predicates", pa.table({"id": pa.array(list(self._relations), pa.string())}))
        more = KEPT.format(kept=area.table(kept)) if kept == "kept" else ""
        everything = "FALSE" if more else "TRUE"
        found = area.query(ENTITIES.format(all=everything, train=train, texts=area.table("texts"), more=more))
        raw, entities = self._entities(found)
        arrays = area.number([kept], raw, np.arange(len(self._relations), dtype=np.int32))
        triples = arrays[kept]
        used = np.flatnonzero(np.bincount(triples[:, 1], minlength=len(self._relations)))
        numbers = np.zeros(len(self._relations), np.int32)
        numbers[used] = np.arange(len(used))
        triples[:, 1] = numbers[triples[:, 1]]
        relations = list(self._relations)
        words = self._relation_words([relations[i] for i in used])
        area.database.close()  # its memory is wanted for what follows
        return finish(name, entities, words, {"train": triples}, {}, options)

    def _make(self, name: str, loose: pa.Table | None) -> list[tuple[str, int, str, int]]:
        """The triples that blank nodes without a name stand for."""
        if loose is None or not len(loose):
            self._tell(name, 0, 0)
            return []
        numbers: dict[str, int] = {}
        columns = [loose[role].to_pylist() for role in ("head", "relation", "tail")]
        rows = [
            (numbers.setdefault(h, len(numbers)), r, numbers.setdefault(t, len(numbers)))
            for h, r, t in zip(*columns, strict=True)
        ]
        keys = list(numbers)
        blank = {b for batch in self._area.query("SELECT id FROM nameless") for b in batch["id"].to_pylist()}
        nodes = BlankNodes(
            np.array(rows, np.int32), np.array([key in blank for key in keys], bool), keys, list(self._relations)
        )
        paths: dict[tuple[str, ...], int] = {}
        made = []
        for head, path, tail in nodes.statements():
            if path not in paths:
                paths[path] = self._index(self._relation(path), self._relations)
            made.append((keys[head], paths[path], keys[tail], self._place))
            self._place += 1
        self._tell(name, nodes.left_out(), len(made))
        return made

    def _is_node(self, key: str) -> bool:
        train, texts = self._area.table("train"), self._area.table("texts")
        text = "SELECT 1 AS one FROM {} WHERE {} = (SELECT key FROM wanted) LIMIT 1"
        wanted = pa.table({"key": pa.array([key], pa.string())})
        places = ((train, "head"), (train, "tail"), (texts, "node"))
        return any(sum(len(b) for b in self._area.query(text.format(*place), wanted=wanted)) for place in places)

    def _exclude(self, source: str, options: ReadOptions) -> list[int]:
        """The relations to exclude, by number."""
        self._read_words()
        keys = list(self._relations)
        text = f"SELECT relation, count(*) AS n FROM {source} GROUP BY relation ORDER BY relation"
        pairs = [(b["relation"][i].as_py(), b["n"][i].as_py()) for b in self._area.query(text) for i in range(len(b))]
        ids, counts = [keys[i] for i, _ in pairs], [count for _, count in pairs]
        names = [self._name(id) for id in ids]
        places = excluded_relations(options.exclude, ids, names, counts, self.shown, self.prefixes)
        return [pairs[place][0] for place in places]

    def _read_words(self) -> None:
        """What is said of predicates."""
        keys = pa.table({"key": pa.array(list(self._relations), pa.string())})
        for batch in self._area.query("SELECT best.* FROM best JOIN keys ON node = key", keys=keys):
            for row in batch.to_pylist():
                self._words[row["node"]] = row["name"], row["others"], row["description"]

    def _name(self, key: str) -> str:
        if key in self._composed:
            return " ".join(self._name(step) for step in self._composed[key])
        return self._words.get(key, (None,))[0] or name_from_id(key)

    def _entities(self, batches: Iterator[pa.RecordBatch]) -> tuple[pa.LargeStringArray, Vocabulary]:
        """The keys of the entities, as the triples have them, and their vocabulary."""
        raw, *writers = (TextWriter(self._area.folder, name) for name in ("raw", "id", "name", "description"))
        blank = 0
        for batch in batches:
            keys = batch["id"].to_pylist()
            names, others, descriptions = (batch[column].to_pylist() for column in ("name", "others", "description"))
            for i, key in enumerate(keys):
                descriptions[i] = _description((names[i], others[i], descriptions[i]))
                names[i] = names[i] or name_from_id(key)
                if key.startswith("_:"):
                    keys[i], blank = f"_:b{blank}", blank + 1
            raw.append(batch["id"])
            for writer, column in zip(writers, (keys, names, descriptions), strict=True):
                writer.append(pa.array(column, pa.large_string()))
        return raw.finish(), self._area.vocabulary("entity", [writer.finish() for writer in writers])

    def _relation_words(self, keys: Sequence[str]) -> Vocabulary:
        descriptions = [_description(self._words.get(key, (None, None, None))) for key in keys]
        columns = keys, [self._name(key) for key in keys], descriptions
        return Vocabulary.build("relation", *(pa.array(column, pa.large_string()) for column in columns))


def _description(texts: Texts) -> str:
    name, others, description = texts
    if not others:
        return description or ""
    return with_other_names(description or "", [o for o in dict.fromkeys(others) if o != (name or "")][:OTHER_NAMES])
