"""Leaks counted by the definition, one triple at a time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import graph_of
from satkgc.kg import KnowledgeGraph
from satkgc.kg.leaks import Leaks, SplitLeaks, find_leaks
from satkgc.kg.readers import read


def by_definition(graph: KnowledgeGraph) -> Leaks:
    train = {tuple(row) for row in graph.train.tolist()}
    proper = {row for row in train if row[0] != row[2]}
    size = Counter(r for _, r, _ in proper)
    mirrored = Counter((r, s) for h, r, t in proper for s in range(graph.num_relations) if (t, s, h) in proper)
    inverse = {(r, s) for (r, s), n in mirrored.items() if 2 * n >= size[r] and 2 * n >= size[s]}

    def leaks(split: str) -> SplitLeaks:
        held_out = [tuple(row) for row in graph.split(split).tolist()]
        others = range(graph.num_relations)
        return SplitLeaks(
            same=sum(row in train for row in held_out),
            symmetric=sum(h != t and (r, r) in inverse and (t, r, h) in train for h, r, t in held_out),
            inverse=sum(
                h != t and any(s != r and (r, s) in inverse and (t, s, h) in train for s in others)
                for h, r, t in held_out
            ),
        )

    return Leaks(
        leaks("valid"),
        leaks("test"),
        tuple(f"r{r}" for r, s in sorted(inverse) if r == s),
        tuple((f"r{r}", f"r{s}") for r, s in sorted(inverse) if r < s),
    )


@settings(max_examples=200)
@given(st.data())
def test_as_defined(data: st.DataObject) -> None:
    entities = data.draw(st.integers(1, 5))
    one = st.integers(0, entities - 1)
    triples = st.lists(st.tuples(one, st.integers(0, 2), one), max_size=25, unique=True)
    graph = graph_of(data.draw(triples), entities, 3, data.draw(triples), data.draw(triples))
    assert find_leaks(graph) == by_definition(graph)


def test_a_married_couple() -> None:
    married, parent, child = 0, 1, 2
    train = [(0, married, 1), (1, married, 0), (2, married, 3), (0, parent, 4), (4, child, 0), (5, child, 1)]
    graph = graph_of(train, 6, 3, valid=[(3, married, 2), (2, married, 3)], test=[(1, parent, 5), (3, parent, 5)])
    assert find_leaks(graph) == Leaks(SplitLeaks(1, 1, 0), SplitLeaks(0, 0, 1), ("r0",), (("r1", "r2"),))


@pytest.mark.shared
def test_wn18rr_has_its_known_leak_and_fb15k_237_none(shared_data: Path) -> None:
    wordnet = find_leaks(read(shared_data / "WN18RR.tar.xz"))
    assert set(wordnet.symmetric_relations) == {
        "_also_see", "_derivationally_related_form", "_similar_to", "_verb_group",
    }  # fmt: skip
    assert 0.3 < wordnet.test.symmetric / 3134 < 0.4  # about a third of its test set, as is known of it
    freebase = find_leaks(read(shared_data / "FB15k-237.tar.xz"))
    assert freebase.test == SplitLeaks(0, 0, 0)  # made by leaving such pairs out


def test_a_source_whose_split_leaks_is_read_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "train.tsv").write_text("a\tmarried\tb\nb\tmarried\ta\nc\tmarried\td\nd\tmarried\tc\ne\tmarried\tf\n")
    (tmp_path / "valid.tsv").write_text("a\tmarried\te\n")
    (tmp_path / "test.tsv").write_text("f\tmarried\te\na\tmarried\tb\n")
    read(tmp_path)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "of 2 test triples train holds 1 as they are, 2 turned round under a symmetric relation and 0" in warning
