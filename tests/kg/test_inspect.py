"""The figures of `kg inspect`, against networkx, scipy's statistics and plain counting; leaks by their definition."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kg_graphs import graphs, vocabulary
from scipy import stats

from graphs import graph_of
from satkgc import KnowledgeGraph, SatkgcError
from satkgc.kg import CATEGORIES, SPLITS, inspect_graph, plot_degrees, relation_categories, write_tsv
from satkgc.kg.inspect import Leaks, SplitLeaks, component_sizes, find_leaks
from satkgc.kg.readers import read_graph


@settings(max_examples=25)
@given(graphs())
def test_figures_are_those_of_networkx_and_scipy(graph: KnowledgeGraph) -> None:
    network = nx.MultiGraph()
    network.add_nodes_from(range(graph.num_entities))
    network.add_edges_from((int(h), int(t)) for h, _, t in graph.train)
    degree = [len(set(network.neighbors(entity))) for entity in network]
    components = [len(component) for component in nx.connected_components(network)]
    texts = graph.entities.descriptions.to_pylist()
    words = [len(text.split()) for text in texts if text.split()]
    figures = inspect_graph(graph)
    assert json.loads(json.dumps(figures)) == json.loads(json.dumps(figures, allow_nan=False))
    assert figures["mean_degree"] == pytest.approx(np.mean(degree))
    for share, key in ((50, "median_degree"), (90, "p90_degree"), (99, "p99_degree")):
        assert figures[key] == pytest.approx(stats.scoreatpercentile(degree, share))
    assert figures["max_degree"] == max(degree)
    assert figures["isolated_entities"] == degree.count(0)
    assert figures["components"] == len(components)
    assert figures["largest_component"] == max(components)
    assert sorted(component_sizes(graph).tolist()) == sorted(components)
    assert figures["described_entities"] == len(words)
    assert figures["description_words"]["max"] == max(words, default=0)
    assert figures["description_words"]["mean"] == pytest.approx(np.mean(words) if words else 0)
    triples = np.concatenate([graph.split(split) for split in SPLITS])[:, 1].tolist()
    counts = {relation["id"]: relation["triples"] for relation in figures["relation_triples"]}
    assert counts == {graph.relations.id(r): triples.count(r) for r in range(graph.num_relations)}
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    assert figures["held_out_entities"] == {split: len(members) for split, members in graph.split_entities.items()}


@settings(max_examples=25)
@given(graphs())
def test_categories_follow_the_rule_of_one_and_a_half(graph: KnowledgeGraph) -> None:
    categories = relation_categories(graph)
    for relation in range(graph.num_relations):
        tails, heads = defaultdict(set), defaultdict(set)
        for h, r, t in graph.train.tolist():
            if r == relation:
                tails[h].add(t)
                heads[t].add(h)
        if not tails:
            assert categories[relation] == len(CATEGORIES)
            continue
        many_heads = np.mean([len(answers) for answers in heads.values()]) >= 1.5
        many_tails = np.mean([len(answers) for answers in tails.values()]) >= 1.5
        assert CATEGORIES[categories[relation]] == f"{'N' if many_heads else '1'}-{'N' if many_tails else '1'}"
    counts = inspect_graph(graph)["relation_categories"]
    assert sum(part["train"] for part in counts.values()) == len(graph.train)


def test_entities_named_by_their_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("satkgc.kg.inspect.ROWS", 3)  # as if it were a large graph
    ids = ["http://e/birthPlace", "Q1", "new_york", "x", "y", "z_z"]
    names = ["birth place", "Ann", "new york", "Xaver", "y", "z z"]
    entities = vocabulary("entity", ids, names)
    graph = KnowledgeGraph.from_arrays("g", entities, vocabulary("relation", ["r"]), [[0, 0, 1]])
    expected = {"entities": 4, "examples": ["http://e/birthPlace", "new_york", "y"]}
    assert inspect_graph(graph)["named_by_id"] == expected


def test_exactly_one_and_a_half_counts_as_many() -> None:
    triples = [[0, 0, 1], [0, 0, 2], [3, 0, 4]]  # three triples, two heads
    graph = KnowledgeGraph.from_arrays("g", vocabulary("entity", list("abcde")), vocabulary("relation", ["r"]), triples)
    assert CATEGORIES[relation_categories(graph)[0]] == "1-N"


def test_the_picture_is_a_picture(tmp_path: Path) -> None:
    graph = KnowledgeGraph.load("wordnet-sample")
    plot_degrees(graph, tmp_path / "degrees.png")
    assert (tmp_path / "degrees.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SatkgcError, match="cannot write the picture"):
        plot_degrees(graph, tmp_path / "missing" / "degrees.png")
    assert [path.name for path in tmp_path.iterdir()] == ["degrees.png"]
    empty = KnowledgeGraph.from_arrays("empty", vocabulary("entity", ["a"]), vocabulary("relation", ["r"]), [])
    with pytest.raises(SatkgcError, match="nothing to draw"):
        plot_degrees(empty, tmp_path / "empty.png")


def test_a_graph_written_as_text_reads_as_it_was(tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_arrays(
        "g",
        vocabulary("entity", ["a", "b", "c"], ["A\tone", "B\ntwo", "C"], ["", "x  y", '"quoted"']),
        vocabulary("relation", ["r"]),
        [[0, 0, 1]],
        [[1, 0, 2]],
        [[2, 0, 2]],
        {"valid": np.array([2], np.int32)},
    )
    write_tsv(graph, tmp_path / "g")
    again = KnowledgeGraph.load(tmp_path / "g")
    for split in ("train", "valid", "test"):
        assert again.split(split).tolist() == graph.split(split).tolist()
    assert again.entities.names.to_pylist() == ["A one", "B two", "C"]
    assert again.entities.descriptions.to_pylist() == ["", "x y", '"quoted"']
    assert again.split_entities["valid"].tolist() == [2]
    with pytest.raises(SatkgcError, match="exists already"):
        write_tsv(graph, tmp_path / "g")


def test_a_graph_without_a_split_or_descriptions_written_as_text_reads_as_it_was(tmp_path: Path) -> None:
    entities = vocabulary("entity", ["a b", "a  b", " a b", 'a"b"'])
    relations = vocabulary("relation", ["r", "s"], texts=["says\tmore", ""])
    graph = KnowledgeGraph.from_arrays("g", entities, relations, [[0, 0, 1], [2, 1, 3]], split_entities={"test": []})
    write_tsv(graph, tmp_path / "g")
    assert sorted(path.name for path in (tmp_path / "g").iterdir()) == ["entities.tsv", "relations.tsv", "train.tsv"]
    again = KnowledgeGraph.load(tmp_path / "g", split="none")
    assert again.train.tolist() == graph.train.tolist()
    assert again.entities.ids.to_pylist() == graph.entities.ids.to_pylist()
    assert again.relations.names.to_pylist() == graph.relations.names.to_pylist()
    assert again.relations.descriptions.to_pylist() == ["says more", ""]


@pytest.mark.parametrize("kind", ["entity", "relation"])
@pytest.mark.parametrize("id", ["a\tb", "a\nb", "b\r", ""])
def test_ids_that_cannot_stand_in_a_tsv_file_are_refused(tmp_path: Path, kind: str, id: str) -> None:
    entities = vocabulary("entity", ["fine", id if kind == "entity" else "x"])
    graph = KnowledgeGraph.from_arrays(
        "g", entities, vocabulary("relation", [id if kind == "relation" else "r"]), [[0, 0, 1]]
    )
    with pytest.raises(SatkgcError, match=rf"^[^\n]*/g: {kind} {re.escape(repr(id))} [^\n]*; keep it in binary form"):
        write_tsv(graph, tmp_path / "g")
    assert list(tmp_path.iterdir()) == []


def leaks_by_definition(graph: KnowledgeGraph) -> Leaks:
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
def test_leaks_as_defined(data: st.DataObject) -> None:
    entities = data.draw(st.integers(1, 5))
    one = st.integers(0, entities - 1)
    triples = st.lists(st.tuples(one, st.integers(0, 2), one), max_size=25, unique=True)
    graph = graph_of(data.draw(triples), entities, 3, data.draw(triples), data.draw(triples))
    assert find_leaks(graph) == leaks_by_definition(graph)


def test_a_married_couple() -> None:
    married, parent, child = 0, 1, 2
    train = [(0, married, 1), (1, married, 0), (2, married, 3), (0, parent, 4), (4, child, 0), (5, child, 1)]
    graph = graph_of(train, 6, 3, valid=[(3, married, 2), (2, married, 3)], test=[(1, parent, 5), (3, parent, 5)])
    assert find_leaks(graph) == Leaks(SplitLeaks(1, 1, 0), SplitLeaks(0, 0, 1), ("r0",), (("r1", "r2"),))


@pytest.mark.shared
def test_wn18rr_has_its_known_leak_and_fb15k_237_none(shared_data: Path) -> None:
    wordnet = find_leaks(read_graph(shared_data / "WN18RR.tar.xz"))
    assert set(wordnet.symmetric_relations) == {
        "_also_see", "_derivationally_related_form", "_similar_to", "_verb_group",
    }  # fmt: skip
    assert 0.3 < wordnet.test.symmetric / 3134 < 0.4  # about a third of its test set, as is known of it
    freebase = find_leaks(read_graph(shared_data / "FB15k-237.tar.xz"))
    assert freebase.test == SplitLeaks(0, 0, 0)  # made by leaving such pairs out


def test_a_source_whose_split_leaks_is_read_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "train.tsv").write_text("a\tmarried\tb\nb\tmarried\ta\nc\tmarried\td\nd\tmarried\tc\ne\tmarried\tf\n")
    (tmp_path / "valid.tsv").write_text("a\tmarried\te\n")
    (tmp_path / "test.tsv").write_text("f\tmarried\te\na\tmarried\tb\n")
    read_graph(tmp_path)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "of 2 test triples train holds 1 as they are, 2 turned round under a symmetric relation and 0" in warning
