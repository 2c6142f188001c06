"""Exports are opened with the tools they are for, on texts of our choosing, and compared with the run's own vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from transformers import AutoTokenizer
from typer.testing import CliRunner

from fused_runs import overrides
from little_world import little_world, write_run
from satkgc.cli import app
from satkgc.errors import SatkgcError
from satkgc.export import FORMATS, export
from satkgc.export.card import model_card
from satkgc.export.vectors import entity_strings, relation_strings
from satkgc.kg import KnowledgeGraph, Vocabulary
from satkgc.models import Questions
from satkgc.text import TextConfig, Texts
from satkgc.training import RunFolder, train_or_stop
from tasks import small_graph
from toy_models import PlainScores, WordVectors

pytest_plugins = ["world"]


@pytest.fixture(scope="module", params=["mean", "cls", "max"])
def pooled(request, tmp_path_factory, tiny_backbone):
    """Runs that pool in each of the ways there are; one of them has one tower for both."""
    folder = tmp_path_factory.mktemp("export") / request.param
    return write_run(folder, little_world(), tiny_backbone, pooling=request.param, tied=request.param == "max")


def own_vectors(run):
    run = RunFolder.load(run)
    model, text = run.model("cpu"), run.config.model.text
    entities, directed = np.append(np.arange(0, 88, 4), 5), np.arange(23) % 8  # 5 is its own neighbour
    strings, relations = list(entity_strings(run.kg, text)), relation_strings(run.kg, text)
    pairs = [(strings[e], relations[d]) for e, d in zip(entities, directed, strict=True)]
    vectors = model.encode_questions(Questions(entities, directed)), model.encode_entities(entities)
    for rows in vectors:
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    return pairs, vectors[0], [strings[e] for e in entities], vectors[1]


@pytest.mark.parametrize(("by_relation", "dropout"), [(False, 0.0), (True, 0.0), (True, 0.2), (False, 0.2)])
def test_strings_are_what_the_towers_read(tiny_backbone, by_relation, dropout):
    tokenizer = AutoTokenizer.from_pretrained(tiny_backbone)
    per_relation = 2 if by_relation else 0
    config = TextConfig(
        neighbours=2,
        neighbours_per_relation=per_relation,
        max_tokens=400,
        neighbour_dropout=dropout,
        description_words=2,
    )
    world = little_world()
    # One entity is its own only neighbour, another has none; both read their whole description with neighbour dropout.
    kept = ~np.isin(world.train[:, [0, 2]], [5, 6]).any(axis=1) | (world.train[:, 0] == world.train[:, 2])
    new = kept & (world.train[:, [0, 2]] > 80).any(axis=1)  # entities that are not in train read what inference says
    parts = {"train": kept & ~new, "inference": new}
    kg = replace(world, **{split: np.ascontiguousarray(world.train[rows]) for split, rows in parts.items()})
    assert kg.train[(kg.train[:, [0, 2]] == 5).any(axis=1)][:, [0, 2]].tolist() == [[5, 5]]
    strings = list(entity_strings(kg, config))
    assert any(" ; inverse " in text for text in strings) == by_relation
    read = Texts(kg, tokenizer, config).entities(range(kg.num_entities))
    rows = [read.ids[a:b].tolist() for a, b in zip(read.ptr, read.ptr[1:], strict=False)]
    assert tokenizer(strings, truncation=True, max_length=400)["input_ids"] == rows


def test_sentence_transformers_gives_the_same_vectors(pooled, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    facts = export(pooled, "sentence-transformers", tmp_path / "st")
    assert next(iter(facts.values())) < 1e-5
    pairs, queries, strings, entities = own_vectors(pooled)
    assert any(len(text) > 60 for text in strings)  # some are cut
    query = sentence_transformers.SentenceTransformer(str(tmp_path / "st" / "query"), device="cpu")
    np.testing.assert_allclose(query.encode(pairs), queries, atol=1e-5)
    entity = sentence_transformers.SentenceTransformer(str(tmp_path / "st" / "entity"), device="cpu")
    np.testing.assert_allclose(entity.encode(strings), entities, atol=1e-5)
    assert sorted(p.name for p in (tmp_path / "st").iterdir()) == ["README.md", "entity", "query"]
    assert not list(tmp_path.rglob("*.bin"))  # no pickles


def test_onnx_gives_the_same_vectors(pooled, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    facts = export(pooled, "onnx", tmp_path / "onnx")
    assert next(iter(facts.values())) < 1e-5
    pairs, queries, strings, entities = own_vectors(pooled)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "onnx" / "tokenizer")
    for name, given, expected in (("query", pairs, queries), ("entity", strings, entities)):
        session = onnxruntime.InferenceSession(str(tmp_path / "onnx" / f"{name}.onnx"))
        cut = "only_first" if name == "query" else True
        for rows in (slice(0, 23), slice(3, 4), slice(5, 12)):  # any number of texts, any length
            tokens = tokenizer(given[rows], truncation=cut, max_length=50, padding=True, return_tensors="np")
            (vectors,) = session.run(None, dict(tokens))
            np.testing.assert_allclose(vectors, expected[rows], atol=1e-5)


def test_vectors_as_parquet_and_npy(prepared, tmp_path, monkeypatch):
    monkeypatch.setattr("satkgc.export.vectors.ROWS", 40)
    stored = np.load(prepared / "index" / "entities.npy")
    assert export(prepared, "parquet", tmp_path / "p")["entities"] == 90
    table = pq.read_table(tmp_path / "p" / "entities.parquet")
    np.testing.assert_array_equal(np.stack(table["vector"].to_numpy()), stored)
    kg = RunFolder.load(prepared).kg
    assert table["id"].to_pylist() == kg.entities.ids.to_pylist()
    for row in (0, 12, 55, 89):
        assert table["text"][row].as_py().startswith(kg.entities.name(row))
    export(prepared, "npy", tmp_path / "n")
    np.testing.assert_array_equal(np.load(tmp_path / "n" / "entities.npy"), stored)
    assert (tmp_path / "n" / "ids.txt").read_text().split("\n")[:-1] == kg.entities.ids.to_pylist()


def test_the_card_says_what_it_is(run_copy, tmp_path):
    export(run_copy, "npy", tmp_path / "plain")
    card = (tmp_path / "plain" / "README.md").read_text()
    assert "90 entities, 4 relations; 450 triples for training" in card
    assert "no validation metrics" in card
    way = {"mrr": 0.25, "hits@1": 0.125, "hits@3": 0.3, "hits@10": 0.5}
    import json

    report = {"valid": {"head": way, "tail": way, "both": way, "candidates": "all"}}
    (run_copy / "metrics.json").write_text(json.dumps(report))
    export(run_copy, "npy", tmp_path / "measured")
    assert "| both | 0.250 | 0.125 | 0.300 | 0.500 |" in (tmp_path / "measured" / "README.md").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TextConfig(neighbours=0), "`name: description`. An inverse"),
        (
            TextConfig(neighbours=7, short_words=9),
            "fewer than\n9 words is followed by the names of up to 7 neighbours.",
        ),
        (TextConfig(neighbours_per_relation=2), "neighbours by relation, up to 2 of each"),
    ],
)
def test_the_card_says_what_a_text_is(prepared, text, said):
    run = RunFolder.load(prepared)
    run = RunFolder(run.folder, run.config.replace(model=run.config.model.replace(text=text)), run.about)
    assert said in model_card(run, "npy", {})


def test_bad_exports_leave_nothing(prepared, tmp_path, monkeypatch):
    with pytest.raises(SatkgcError, match="no export format 'pickle'; choose one of sentence-transformers"):
        export(prepared, "pickle", tmp_path / "x")
    (tmp_path / "there").mkdir()
    with pytest.raises(SatkgcError, match="this is there already"):
        export(prepared, "npy", tmp_path / "there")
    with pytest.raises(SatkgcError, match="no run here"):
        export(tmp_path / "there", "npy", tmp_path / "x")
    monkeypatch.setattr("satkgc.export.model_card", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export(prepared, "npy", tmp_path / "x")
    assert [p.name for p in tmp_path.iterdir()] == ["there"]


def test_an_id_of_two_lines_is_refused_where_an_id_is_a_line(tmp_path, tiny_backbone):
    kg = KnowledgeGraph.from_arrays(
        "lines",
        Vocabulary.build("entity", *[pa.array(["a", "b\nc"])] * 3),
        Vocabulary.build("relation", *[pa.array(["r"])] * 3),
        [(0, 0, 1)],
    )
    run = write_run(tmp_path / "run", kg, tiny_backbone)
    with pytest.raises(SatkgcError, match=r"the id 'b\\nc' has two lines, ids.txt one for each; export as parquet"):
        export(run, "npy", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_formats_that_a_model_has_nothing_for_are_refused_in_one_line(tmp_path, monkeypatch, prepared):
    """A run whose model has vectors and no encoders, and one whose model only scores."""
    kg = little_world()
    for model, refused in ((WordVectors(kg), {"onnx", "sentence-transformers"}), (PlainScores(kg), set(FORMATS))):
        run = tmp_path / type(model).__name__
        RunFolder.create(run, RunFolder.load(prepared).config, kg, "made up")
        model.save(run / "model")
        monkeypatch.setattr(RunFolder, "model", lambda *_, model=model, **__: model)
        for format in FORMATS:
            out = tmp_path / f"{type(model).__name__}-{format}"
            if format not in refused:
                export(run, format, out)
                continue
            with pytest.raises(SatkgcError, match=f"{type(model).__name__} has no"):
                export(run, format, out)
            assert not out.exists()
    vectors = np.load(tmp_path / "WordVectors-npy" / "entities.npy")
    np.testing.assert_array_equal(vectors, WordVectors(kg).encode_entities(np.arange(90)))


def test_of_a_fused_run_it_is_said_which_expert_is_written(tmp_path, tiny_backbone):
    train_or_stop(small_graph(), "fused", out=tmp_path / "fused", overrides=overrides(tiny_backbone))
    command = ["export", str(tmp_path / "fused"), str(tmp_path / "vec"), "--format", "parquet", "--device", "cpu"]
    assert "vec: parquet of the expert text alone (entities 40, width " in CliRunner().invoke(app, command).stdout
