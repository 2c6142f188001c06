"""The inference split: triples to answer from and never to train on, in every form that a graph has."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs import graph_of
from satkgc import KnowledgeGraph, SatkgcError
from satkgc.kg import inspect_graph, write_tsv

# Two graphs that share relations and no entity: 0 to 3 to train on, 4 to 7 to answer from.
TRAIN, VALID = [(0, 0, 1), (1, 0, 2), (2, 1, 3), (3, 1, 0)], [(0, 0, 2)]
INFERENCE, TEST = [(4, 0, 5), (5, 0, 6), (6, 1, 7)], [(4, 0, 6), (7, 1, 4)]


def two_graphs() -> KnowledgeGraph:
    return graph_of(TRAIN, 8, 2, VALID, TEST, INFERENCE)


def ids(kg: KnowledgeGraph, split: str) -> set[tuple[str, str, str]]:
    name = kg.entities.id
    return {(name(h), kg.relations.id(r), name(t)) for h, r, t in kg.split(split).tolist()}


def test_answers_may_be_derived_from_it_and_nothing_is_trained_on_it() -> None:
    kg = two_graphs()
    assert kg.split("inference").tolist() == [list(row) for row in INFERENCE]
    assert kg.facts.tolist() == [list(row) for row in TRAIN + INFERENCE]
    assert not kg.facts.flags.writeable
    assert kg.adjacency.degree.tolist() == [2, 2, 2, 2, 0, 0, 0, 0]
    assert kg.fact_adjacency.degree.tolist() == [2, 2, 2, 2, 1, 2, 2, 1]
    assert kg.facts[kg.fact_adjacency.triples_at(5)].tolist() == [[4, 0, 5], [5, 0, 6]]
    assert kg.known_train.tails(4, 0).tolist() == []
    assert kg.known_facts.tails(4, 0).tolist() == [5]
    assert kg.known_all.tails(4, 0).tolist() == [5, 6]  # the filter: inference and test
    assert repr(kg).endswith("4/1/2/3 train/valid/test/inference triples)")


def test_a_graph_without_it_derives_nothing_twice() -> None:
    kg = graph_of(TRAIN, 8, 2, VALID, TEST)
    assert kg.facts is kg.train
    assert kg.fact_adjacency is kg.adjacency
    assert kg.known_facts is kg.known_train
    assert repr(kg).endswith("4/1/2 train/valid/test triples)")


def test_its_indices_are_checked() -> None:
    with pytest.raises(SatkgcError, match="a triple points to entity 8 of 8"):
        graph_of(TRAIN, 8, 2, inference=[(8, 0, 1)])


def test_the_binary_form_names_it_only_where_there_is_one(tmp_path: Path) -> None:
    """A folder that was written before there was such a split is the same, byte by byte, as one written now."""
    graph_of(TRAIN, 8, 2, VALID, TEST).save(tmp_path / "without")
    two_graphs().save(tmp_path / "with")
    metas = [json.loads((tmp_path / name / "meta.json").read_text()) for name in ("without", "with")]
    assert [meta["version"] for meta in metas] == [1, 2]  # what came before refuses the second and reads the first
    assert metas[1].keys() - metas[0].keys() == {"inference"}
    assert metas[1]["files"].keys() - metas[0]["files"].keys() == {"inference.npy"}
    assert KnowledgeGraph.load(tmp_path / "without").inference.shape == (0, 3)
    (tmp_path / "with" / "inference.npy").unlink()
    with pytest.raises(SatkgcError, match=r"inference\.npy is missing"):
        KnowledgeGraph.load(tmp_path / "with")


@pytest.mark.parametrize("packed", [False, True])
def test_it_is_a_file_of_the_tsv_folder(tmp_path: Path, packed: bool) -> None:
    kg, source = two_graphs(), tmp_path / "tsv"
    write_tsv(kg, source)
    assert (source / "inference.tsv").read_text().splitlines()[0] == "e4\tr0\te5"
    if packed:
        source = tmp_path / "tsv.tar.xz"
        with tarfile.open(source, "w:xz") as archive:
            archive.add(tmp_path / "tsv", "tsv")
    again = KnowledgeGraph.load(source)
    assert all(ids(again, split) == ids(kg, split) for split in ("train", "valid", "test", "inference"))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_it_is_a_value_of_a_tables_split_column(tmp_path: Path, ending: str) -> None:
    kg, file = two_graphs(), tmp_path / f"triples.{ending}"
    rows = [(*row, split) for split in ("train", "inference", "valid", "test") for row in sorted(ids(kg, split))]
    columns = dict(zip(("head", "relation", "tail", "split"), map(list, zip(*rows, strict=True)), strict=True))
    if ending == "csv":
        file.write_text("\n".join(map(",".join, [columns, *rows])))  # type: ignore[list-item]
    else:
        pq.write_table(pa.table(columns), file)
    again = KnowledgeGraph.load(file)
    assert all(ids(again, split) == ids(kg, split) for split in ("train", "valid", "test", "inference"))


def test_a_source_that_has_it_and_no_valid_keeps_it_when_it_is_split(tmp_path: Path) -> None:
    kg = graph_of([(i, i % 2, (3 * i + 1) % 10) for i in range(10)] * 2, 14, 2, inference=[(10, 0, 11), (12, 1, 13)])
    write_tsv(kg, tmp_path / "tsv")
    again = KnowledgeGraph.load(tmp_path / "tsv", valid=0.2, test=0.2)
    assert len(again.valid)
    assert len(again.test)
    assert ids(again, "inference") == ids(kg, "inference")


def test_a_relation_that_only_it_has_is_refused(tmp_path: Path) -> None:
    write_tsv(graph_of(TRAIN, 8, 3, inference=[(4, 2, 5)]), tmp_path / "tsv")
    with pytest.raises(SatkgcError, match=r"inference\.tsv:1: relation 'r2' is in inference but never in train"):
        KnowledgeGraph.load(tmp_path / "tsv")


def test_inspect_counts_it_and_what_it_gives_away() -> None:
    kg = graph_of(
        [(0, 0, 1), (1, 0, 0), (2, 1, 3)], 8, 2, test=[(5, 0, 4), (6, 1, 7)], inference=[(4, 0, 5), (6, 1, 7)]
    )
    figures = inspect_graph(kg)
    assert figures["inference"] == 2
    assert figures["leaks"]["test"] == {"same": 1, "symmetric": 1, "inverse": 0}
    assert figures["isolated_entities"] == 4  # of the training graph
    assert {row["id"]: row["triples"] for row in figures["relation_triples"]} == {"r0": 4, "r1": 3}
