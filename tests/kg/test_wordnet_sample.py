"""The bundled graph: what its script makes, and what a graph to learn on should be."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from satkgc.kg import KnowledgeGraph
from satkgc.kg.inspect import SplitLeaks, find_leaks
from satkgc.kg.readers import read_graph

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "satkgc" / "kg" / "data" / "wordnet-sample"
WORDNET = Path("/usr/share/wordnet")


@pytest.fixture(scope="module")
def sample() -> KnowledgeGraph:
    return read_graph(FOLDER)


@pytest.mark.skipif(not (WORDNET / "cntlist.rev").is_file(), reason="WordNet 3.0 (wordnet-base) is not installed")
def test_the_script_makes_the_bundled_files() -> None:
    spec = importlib.util.spec_from_file_location("make_wordnet_sample", ROOT / "scripts" / "make_wordnet_sample.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script  # its dataclass looks itself up
    spec.loader.exec_module(script)
    files = {name: content.encode() for name, content in script.files(WORDNET)}
    assert files == {path.name: path.read_bytes() for path in FOLDER.iterdir()}


def test_train_is_connected_and_knows_everything(sample: KnowledgeGraph) -> None:
    network = nx.Graph([(h, t) for h, _, t in sample.train.tolist()])
    assert nx.is_connected(network)
    assert len(network) == sample.num_entities
    assert set(sample.train[:, 1].tolist()) == set(range(sample.num_relations))


def test_nothing_leaks(sample: KnowledgeGraph) -> None:
    leaks = find_leaks(sample)
    assert leaks.valid == leaks.test == SplitLeaks(0, 0, 0)
    pairs = [{frozenset((h, t)) for h, _, t in sample.split(s).tolist()} for s in ("train", "valid", "test")]
    assert sum(map(len, pairs)) == len(set().union(*pairs))


def test_it_is_small_and_long_tailed_and_says_something(sample: KnowledgeGraph) -> None:
    degree = sample.adjacency.degree
    assert 2_000 < sample.num_entities < 5_000
    assert sample.num_relations >= 10
    assert np.median(degree) <= 2 < 10 * np.median(degree) < degree.max()
    assert all(sample.entities.descriptions.to_pylist())
    assert all(re.fullmatch(r"\S+\.[nvar]\.\d\d", id) for id in sample.entities.ids.to_pylist())
    assert not any("_" in name for name in sample.entities.names.to_pylist())


def test_a_dog_is_a_domestic_animal(sample: KnowledgeGraph) -> None:
    dog, hypernym = sample.entities.index("dog.n.01"), sample.relations.index("hypernym")
    above = {sample.entities.name(e) for e in sample.known_all.tails(dog, hypernym)}
    assert above == {"canine", "domestic animal"}
    assert sample.entities.description(dog).startswith("a member of the genus Canis")


def test_the_licence_is_beside_it() -> None:
    text = (FOLDER / "LICENSE-WordNet.txt").read_text()
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in text
    assert "Permission to use, copy, modify and distribute" in text
