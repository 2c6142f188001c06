"""The same graph, whatever form it is in."""

from __future__ import annotations

import tempfile
from pathlib import Path

import forms
import networkx as nx
import numpy as np
from hypothesis import given, settings

from satkgc.kg import inspect_graph
from satkgc.kg.readers import ReadOptions, read_graph


@settings(max_examples=15)
@given(forms.sources())
def test_folders_archives_and_tables_say_what_was_written(source: forms.Source) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        graphs = [read_graph(forms.folder(source, folder / "folder"), ReadOptions(split="none"))]
        graphs += [
            read_graph(forms.tar(source, folder / f"g.tar.{kind}"), ReadOptions(split="none")) for kind in ("gz", "xz")
        ]
        graphs.append(read_graph(forms.zipped(source, folder / "g.zip"), ReadOptions(split="none")))
        for ending in ("csv", "tsv", "parquet"):
            paths = forms.tables(source, folder, ending)
            options = ReadOptions(split="none", entities=paths["entities"], relations=paths["relations"])
            graphs.append(read_graph(paths["triples"], options))
        for graph in graphs:
            assert forms.said(graph) == source


@settings(max_examples=15)
@given(forms.sources())
def test_every_form_of_rdf_says_what_was_written(source: forms.Source) -> None:
    with tempfile.TemporaryDirectory() as place:
        for path in forms.rdf_files(source, Path(place)):
            graph = forms.said(read_graph(path, ReadOptions(split="none")))
            assert set(graph.splits["train"]) == set(source.triples), path.name
            assert graph.entities == source.entities, path.name
            assert graph.relations == source.relations, path.name


def test_figures_of_tsv_parquet_and_n_triples_are_those_of_networkx(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    numbers = rng.zipf(1.6, (400, 3)) % [90, 5, 90]  # long-tailed, with parallel edges and loops
    triples = sorted({(f"http://e/{h}", f"http://r/{r}", f"http://e/{t}") for h, r, t in numbers})
    entities = {f"http://e/{i}": (f"entity {i}", f"about {i}" if i % 3 else "") for i in range(90)}
    source = forms.Source({"train": triples}, entities, {f"http://r/{i}": f"r {i}" for i in range(5)})
    network = nx.MultiGraph([(h, t) for h, _, t in triples])
    network.add_nodes_from(entities)
    degree = [len(set(network.neighbors(e))) for e in entities]
    expected = {
        "entities": 90, "relations": 5, "train": len(triples), "valid": 0, "test": 0, "described_entities": 60,
        "mean_degree": float(np.mean(degree)), "max_degree": max(degree),
        "components": nx.number_connected_components(network),
    }  # fmt: skip
    (tmp_path / "g.nt").write_text(forms.nt(source))
    paths = forms.tables(source, tmp_path, "parquet")
    graphs = [
        read_graph(forms.folder(source, tmp_path / "folder"), ReadOptions(split="none")),
        read_graph(
            paths["triples"], ReadOptions(split="none", entities=paths["entities"], relations=paths["relations"])
        ),
        read_graph(tmp_path / "g.nt", ReadOptions(split="none")),
    ]
    for graph in graphs:
        assert {key: value for key, value in inspect_graph(graph).items() if key in expected} == expected


def test_a_split_does_not_depend_on_the_form(tmp_path: Path) -> None:
    triples = [(f"http://e/{i * 7 % 40}", f"http://r/{i % 3}", f"http://e/{i * 11 % 40}") for i in range(200)]
    source = forms.Source(
        {"train": sorted(set(triples), reverse=True)}, {id: (id, "") for t in triples for id in t[::2]}
    )
    source.relations = {f"http://r/{i}": f"r {i}" for i in range(3)}
    (tmp_path / "g.nt").write_text(forms.nt(source))
    graphs = [forms.said(read_graph(path)) for path in (forms.folder(source, tmp_path / "folder"), tmp_path / "g.nt")]
    assert graphs[0].splits["test"]
    for split in ("train", "valid", "test"):
        assert set(graphs[0].splits[split]) == set(graphs[1].splits[split])
