"""Graphs out of data frames, networkx and rdflib."""

from __future__ import annotations

import forms
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import rdflib

from satkgc import KnowledgeGraph, SatkgcError

ROWS = [("a", "knows", "b"), ("b", "likes", "c")]


def triples(graph: KnowledgeGraph) -> list[tuple[str, str, str]]:
    return forms.said(graph).splits["train"]


def test_data_frames() -> None:
    frame = pd.DataFrame(ROWS, columns=["source", "type", "target"], index=[7, 8])
    texts = pd.DataFrame({"id": list("abc"), "name": ["Ann", None, "Cy"], "description": ["x", "y", None]})
    graph = KnowledgeGraph.from_pandas(frame, texts, name="people", split="none")
    assert (graph.name, triples(graph)) == ("people", ROWS)
    assert forms.said(graph).entities == {"a": ("Ann", "x"), "b": ("b", "y"), "c": ("Cy", "")}
    assert triples(KnowledgeGraph.from_pandas(pa.Table.from_pandas(frame), split="none")) == ROWS
    assert triples(KnowledgeGraph.from_pandas(pd.DataFrame(ROWS), split="none")) == ROWS  # columns 0, 1, 2
    named = pd.DataFrame(ROWS, columns=["x", "y", "z"])
    with pytest.raises(SatkgcError, match=r"the triples: which column is the head .*--head x --relation y --tail z"):
        KnowledgeGraph.from_pandas(named)
    assert triples(KnowledgeGraph.from_pandas(named, head="x", relation="y", tail="z", split="none")) == ROWS
    with pytest.raises(SatkgcError, match="the triples: row 1: the tail of this triple is empty"):
        KnowledgeGraph.from_pandas(frame.assign(target=["b", None]))
    with pytest.raises(SatkgcError, match="unknown option 'splt'; did you mean 'split'"):
        KnowledgeGraph.from_pandas(frame, splt="none")
    with pytest.raises(SatkgcError, match="the triples: this is no table"):
        KnowledgeGraph.from_pandas(5)


def test_whole_numbers_with_gaps_are_no_floats() -> None:
    frame = pd.DataFrame({"head": [1, 2], "relation": ["r", "r"], "tail": np.array([2.0, 3.0])})
    assert triples(KnowledgeGraph.from_pandas(frame, split="none")) == [("1", "r", "2"), ("2", "r", "3")]
    halves = frame.assign(tail=[2.5, 3.0])
    assert triples(KnowledgeGraph.from_pandas(halves, split="none"))[0] == ("1", "r", "2.5")


def test_networkx() -> None:
    graph = nx.DiGraph(name="people")
    graph.add_node("a", name="Ann", description="x")
    graph.add_edge("a", "b", type="knows")
    graph.add_edge("b", 3, type="likes", weight=2)
    made = KnowledgeGraph.from_networkx(graph, split="none")
    assert (made.name, triples(made)) == ("people", [("a", "knows", "b"), ("b", "likes", "3")])
    assert forms.said(made).entities == {"a": ("Ann", "x"), "b": ("b", ""), "3": ("3", "")}
    assert triples(KnowledgeGraph.from_networkx(graph, split="none", exclude="likes")) == [("a", "knows", "b")]
    graph.add_edge("a", 3)
    with pytest.raises(
        SatkgcError, match=r"not every edge has a relation; relation= .* of type, weight; relation_name="
    ):
        KnowledgeGraph.from_networkx(graph)
    same = KnowledgeGraph.from_networkx(graph, relation_name="linked", split="none")
    assert triples(same) == [("a", "linked", "b"), ("a", "linked", "3"), ("b", "linked", "3")]


def test_keys_of_a_multigraph_are_relations() -> None:
    graph = nx.MultiDiGraph([("a", "b", "knows"), ("a", "b", "likes")])
    assert triples(KnowledgeGraph.from_networkx(graph, split="none")) == [("a", "knows", "b"), ("a", "likes", "b")]


def test_networkx_without_directions(caplog: pytest.LogCaptureFixture) -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", relation="knows")
    assert triples(KnowledgeGraph.from_networkx(graph, split="none")) == [("a", "knows", "b")]
    assert "edges without a direction" in caplog.text
    with pytest.raises(SatkgcError, match="two nodes are written '1'"):
        KnowledgeGraph.from_networkx(nx.Graph([(1, "1")]), relation_name="r")


@pytest.mark.parametrize("kind", [rdflib.Graph, rdflib.Dataset])
def test_rdflib(kind: type[rdflib.Graph]) -> None:
    graph = kind()
    e = rdflib.Namespace("http://e/")
    graph.bind("e", e)
    graph.add((e.a, e.knows, e.b))
    graph.add((e.a, e.called, rdflib.Literal("Ann")))
    made = KnowledgeGraph.from_rdflib(graph, split="none", label="e:called")
    assert triples(made) == [("http://e/a", "http://e/knows", "http://e/b")]
    assert forms.said(made).entities == {"http://e/a": ("Ann", ""), "http://e/b": ("b", "")}


@pytest.mark.parametrize(
    ("source", "maker"),
    [
        (pd.DataFrame(ROWS), "from_pandas"), (nx.Graph(), "from_networkx"), (rdflib.Graph(), "from_rdflib"),
        ([("a", "r", "b")], "from_pandas"), (5, "from_pandas"),
    ],
)  # fmt: skip
def test_load_says_what_to_use(source: object, maker: str) -> None:
    with pytest.raises(SatkgcError, match=f"is no file; use KnowledgeGraph.{maker}; load takes paths"):
        KnowledgeGraph.load(source)  # type: ignore[arg-type]
