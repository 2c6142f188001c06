"""What a run folder gets before it answers, and what is refused when it does not fit."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
from threading import Thread

import numpy as np
import pytest
from filelock import FileLock
from scipy.special import expit, log_softmax

from graphs import graph_of
from little_world import write_run
from satkgc.completion import INDEXES, Completer, is_prepared
from satkgc.completion.calibration import calibrate_entities, sample_queries
from satkgc.completion.prepare import model_checksum
from satkgc.errors import SatkgcError
from satkgc.manifest import write_manifest
from satkgc.models import TextModel
from satkgc.text import Texts

pytest_plugins = ["world"]


def test_the_folder_has_vectors_index_and_calibration(prepared, completer):
    stored = np.load(prepared / "index" / "entities.npy")
    model = completer._engine.model
    np.testing.assert_allclose(stored, model.encode_entities(np.arange(90, dtype=np.int32)), atol=1e-5)
    np.testing.assert_array_equal(stored, completer.vectors())
    np.testing.assert_array_equal(stored[20:90], completer.vectors(20, 95))
    facts = json.loads((prepared / "index" / "index.json").read_text())
    assert (facts["entities"], facts["dim"], facts["kind"]) == (90, 32, "exact")
    assert (prepared / "reliability.png").read_bytes().startswith(b"\x89PNG")
    assert completer.calibrated
    assert not list(prepared.rglob("*.part*"))


def test_it_is_made_once(run_copy):
    before = (run_copy / "index" / "entities.npy").stat().st_mtime_ns
    Completer.load(run_copy)
    assert (run_copy / "index" / "entities.npy").stat().st_mtime_ns == before
    (run_copy / "index" / "index.json").unlink()  # as if it had been stopped half way
    Completer.load(run_copy)
    assert (run_copy / "index" / "entities.npy").stat().st_mtime_ns > before
    assert (run_copy / "index" / "index.json").exists()


def test_texts_are_tokenised_once(run_copy, completer, monkeypatch):
    texts = completer._engine.model.texts
    assert texts.tokens.texts.ids.size
    monkeypatch.setattr(Texts, "_entity_tokens", lambda *_: 1 / 0)
    again = Completer.load(run_copy)
    asked = again._engine.model.texts.queries([3, 5, 7], [0, 1, 2])
    whole = texts.queries([3, 5, 7], [0, 1, 2])
    assert asked.ids.tolist() == whole.ids.tolist()
    assert again.tails("Q3", "near") == completer.tails("Q3", "near")
    monkeypatch.undo()
    file = run_copy / "index" / "texts.safetensors"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(SatkgcError, match=r"the index is damaged \(texts\.safetensors: .*\); make it anew with"):
        Completer.load(run_copy)
    file.unlink()
    with pytest.raises(SatkgcError, match=r"the index is damaged \(texts\.safetensors was altered or cut short\)"):
        Completer.load(run_copy)
    as_format_2(run_copy)  # which an earlier version may have written without
    assert Completer.load(run_copy).tails("Q3", "near") == completer.tails("Q3", "near")


def test_half_an_index_is_none(run_copy, monkeypatch):
    monkeypatch.setattr("satkgc.completion.prepare.calibrate", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Completer.prepare(run_copy)
    monkeypatch.undo()
    Completer.load(run_copy)  # the one before, which is whole
    shutil.rmtree(run_copy / "index")
    monkeypatch.setattr("satkgc.completion.prepare.calibrate", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Completer.prepare(run_copy)
    assert not is_prepared(run_copy)


def test_one_that_was_stopped_goes_on_where_it_was(run_copy, prepared, monkeypatch):
    encode, seen = TextModel.encode_entities, []

    def stops(model, entities):
        seen.append(len(entities))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return encode(model, entities)

    monkeypatch.setattr("satkgc.completion.prepare.CHUNK", {"cpu": 20})
    monkeypatch.setattr(TextModel, "encode_entities", stops)
    with pytest.raises(KeyboardInterrupt):
        Completer.prepare(run_copy)
    (run_copy / ".index.partial" / "entities-of-another.part.npy").write_bytes(b"left behind")
    Completer.prepare(run_copy)
    assert seen == [20, 20, 20, 20, 20, 10]
    whole, again = (np.load(run / "index" / "entities.npy") for run in (prepared, run_copy))
    assert np.allclose(whole, again, atol=1e-6)
    assert not list(run_copy.rglob("*.part*"))


def test_two_at_once_do_not_disturb_each_other(run_copy, prepared, monkeypatch):
    encode, other = TextModel.encode_entities, Thread(target=lambda: Completer.prepare(run_copy))

    def meets(model, entities):
        if not other.ident:
            other.start()
            other.join(0.3)
            assert other.is_alive()  # it waits for this one
        return encode(model, entities)

    monkeypatch.setattr("satkgc.completion.prepare.CHUNK", {"cpu": 40})
    monkeypatch.setattr(TextModel, "encode_entities", meets)
    Completer.prepare(run_copy)
    assert is_prepared(run_copy)
    other.join()
    Completer.load(run_copy)
    assert not (run_copy / ".index.partial").exists()
    whole, again = (np.load(run / "index" / "entities.npy") for run in (prepared, run_copy))
    assert np.allclose(whole, again, atol=1e-6)


def test_an_index_of_another_model_is_refused(run_copy, tmp_path, tiny_backbone):
    import torch
    from safetensors.torch import load_file, save_file

    file = run_copy / "model" / "entity" / "model.safetensors"
    weights = load_file(file)
    name = next(iter(weights))
    save_file({**weights, name: weights[name] + torch.tensor(0.1)}, file, {"format": "pt"})
    with pytest.raises(SatkgcError, match=r"model: entity/model\.safetensors was altered or cut short; copy the run"):
        Completer.load(run_copy)
    write_manifest(run_copy / "model")  # as by another training
    with pytest.raises(SatkgcError, match=r"the index does not belong to this run's model; .*satkgc prepare"):
        Completer.load(run_copy)
    Completer.prepare(run_copy)
    Completer.load(run_copy)


def test_an_index_of_another_tokenizer_is_refused_in_a_run_without_sums_too(run_copy):
    (run_copy / "model" / "manifest.json").unlink()  # as earlier versions left it
    Completer.prepare(run_copy)
    Completer.load(run_copy)
    (run_copy / "model" / "tokenizer" / "tokenizer_config.json").unlink()
    with pytest.raises(SatkgcError, match=r"the index does not belong to this run's model; .*satkgc prepare"):
        Completer.load(run_copy)


@pytest.mark.parametrize("size", [3, 90])  # of another size, and of the same
def test_an_index_of_another_graph_is_refused(run_copy, tiny_backbone, tmp_path, size):
    other = write_run(tmp_path / "other", graph_of([[0, 0, 1], [1, 0, 2]], size), tiny_backbone)
    shutil.rmtree(run_copy / "graph")
    shutil.copytree(other / "graph", run_copy / "graph")
    with pytest.raises(SatkgcError, match="the index does not belong to this run's graph"):
        Completer.load(run_copy)


def test_what_is_no_run_is_refused(tmp_path, run_copy):
    with pytest.raises(SatkgcError, match="no run here"):
        Completer.load(tmp_path)
    with pytest.raises(SatkgcError, match="no run here"):
        Completer.load(tmp_path / "nowhere")
    (run_copy / "index" / "index.json").write_text("{")
    with pytest.raises(SatkgcError, match="not an index"):
        Completer.load(run_copy)
    (run_copy / "index" / "index.json").write_text("[]")
    with pytest.raises(SatkgcError, match="not an index"):
        Completer.load(run_copy)


def test_without_validation_triples_there_are_answers_but_no_probabilities(tmp_path, tiny_backbone):
    run = write_run(tmp_path / "run", graph_of([[0, 0, 1], [1, 0, 2], [2, 1, 0]], 3, 2), tiny_backbone)
    completer = Completer.load(run)
    answers = completer.tails("e0", "r0", k=10)
    assert {a.id for a in answers} == {"e1", "e2"}
    assert all(a.probability is None for a in answers)
    assert not (run / "index" / "calibration.json").exists()
    with pytest.raises(SatkgcError, match="this run has no probabilities"):
        completer.propose(tmp_path / "out.tsv", min_probability=0.5)
    assert completer.propose(tmp_path / "out.tsv", n=5) > 0
    assert [a.probability for a in completer.relations("e0", "e1")] == [None, None]
    assert completer.relations("e0", "e1", min_probability=0.1) == []
    assert (tmp_path / "out.tsv").read_text().splitlines()[1].endswith("\t")


def test_faiss_behind_the_same_completer(run_copy, completer):
    pytest.importorskip("faiss")
    facts = Completer.prepare(run_copy, index="faiss")
    assert facts["recall@10"] > 0.95
    again = Completer.load(run_copy)
    for h in range(0, 90, 9):
        mine, exact = again.tails(f"Q{h}", "near", k=10), completer.tails(f"Q{h}", "near", k=10)
        assert [a.score for a in mine] == pytest.approx([a.score for a in exact], abs=1e-4)
    # Known answers may be far down, but they are always there.
    h, r, t = completer.kg.train[40].tolist()
    answers = again.tails(f"Q{h}", completer.kg.relations.id(r), k=90)
    assert any(a.id == f"Q{t}" and a.known for a in answers)


def test_calibration_learns_from_what_validation_has_and_training_has_not(completer, monkeypatch):
    """The scores and labels given to the fit, against looking at every triple."""
    seen = {}
    record = lambda scores, labels, scale: seen.update(scores=scores, labels=labels, scale=scale)  # noqa: E731
    monkeypatch.setattr("satkgc.completion.calibration.fit", record)
    calibrate_entities(completer._engine)
    assert seen["scale"] == 1.0  # they are cosines
    kg, engine = completer.kg, completer._engine
    queries = sample_queries(kg, kg.valid, 10**6)
    ends = {(h, r) for h, r, _ in kg.valid.tolist()} | {(t, r + 4) for _, r, t in kg.valid.tolist()}
    assert set(queries) == ends
    train, valid, test = ({tuple(t) for t in kg.split(s).tolist()} for s in ("train", "valid", "test"))
    vectors = completer.vectors()
    for row in range(0, len(queries), 10):
        entity, d = queries[row]
        triple = (lambda e: (entity, d, e)) if d < 4 else (lambda e: (e, d - 4, entity))  # noqa: B023
        scores = vectors @ engine.encode([queries[row]]).vectors[0]
        usable = [
            e
            for e in range(90)
            if (triple(e) in valid and triple(e) not in train)
            or (triple(e) not in train | test and (e != entity or d % 4 == 3))
        ]
        ranked = sorted(usable, key=lambda e: -scores[e])[:50]
        np.testing.assert_allclose(seen["scores"][row, : len(ranked)], scores[ranked], atol=1e-5)
        assert seen["labels"][row].sum() == sum(triple(e) in valid for e in ranked)


def test_probabilities_are_those_of_the_formula(completer):
    """Known answers compete with the 50 best unknown ones; those among the 50 only with each other."""
    mapping = completer._engine.calibration.entities.mapping
    everything = completer.tails("Q3", "knows", k=90)
    competitors = sorted((a.score for a in everything if not a.known), reverse=True)[:50]
    assert any(a.known for a in everything)
    for answer in everything:
        listed = not answer.known and answer.score >= competitors[-1]
        field = competitors if listed else [*competitors, answer.score]
        share = log_softmax(np.array(field) / mapping.temperature)[field.index(answer.score)]
        raw = mapping.bias + mapping.by_score * answer.score + mapping.by_share * share
        beyond = min(raw - mapping.knots[0], 0) + max(raw - mapping.knots[-1], 0)
        by_hand = expit(np.interp(raw, mapping.knots, mapping.levels) + beyond)
        assert answer.probability == pytest.approx(by_hand, rel=1e-4)


@pytest.mark.parametrize(("name", "content"), [("faiss.index", b"IxMp"), ("faiss.index", None), ("faiss.json", b"{")])
def test_a_damaged_faiss_index_is_one_line(run_copy, name, content):
    pytest.importorskip("faiss")
    Completer.prepare(run_copy, index="faiss")
    (run_copy / "index" / name).unlink()
    if content is not None:
        (run_copy / "index" / name).write_bytes(content)
    with pytest.raises(SatkgcError, match=r"the index is damaged \(.*\); make it anew with `satkgc prepare"):
        Completer.load(run_copy)


def test_a_calibration_of_relations_that_is_none_is_one_line(run_copy):
    as_format_2(run_copy)  # which had no sums
    file = run_copy / "calibration.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "relations": {"colour": 1}}))
    with pytest.raises(SatkgcError, match=r"calibration\.json: not a calibration; remove it and run `satkgc prepare`"):
        Completer.load(run_copy)
    file.unlink()
    with pytest.raises(SatkgcError, match=r"the index is damaged \(no calibration\.json\)"):
        Completer.load(run_copy)


def as_format_2(run):
    """A prepared run folder as earlier versions left it: no manifests, the calibration beside the index."""
    (run / "index" / "calibration.json").rename(run / "calibration.json")
    for folder in ("index", "model"):
        (run / folder / "manifest.json").unlink()
    facts = json.loads((run / "index" / "index.json").read_text())
    facts |= {"format": 2, "model": model_checksum(run / "model")}
    (run / "index" / "index.json").write_text(json.dumps(facts))


def as_format_1(run):
    """A prepared run folder as version 0.1 left it: the relations' calibration in index.json, an older checksum."""
    as_format_2(run)
    calibration = json.loads((run / "calibration.json").read_text())
    del calibration["entities"]["mapping"]["scale"]
    (run / "calibration.json").write_text(json.dumps(calibration["entities"]))
    facts = json.loads((run / "index" / "index.json").read_text())
    facts |= {"format": 1, "model": model_checksum(run / "model", "*/*.safetensors")}
    (run / "index" / "index.json").write_text(json.dumps({**facts, "relations": calibration["relations"]}))


def test_an_index_of_format_2_opens_and_is_written_anew_as_one_of_now(run_copy, completer):
    as_format_2(run_copy)
    for _ in range(2):
        assert Completer.load(run_copy).tails("Q3", "near", k=90) == completer.tails("Q3", "near", k=90)
        Completer.prepare(run_copy)
    assert not (run_copy / "calibration.json").exists()
    assert json.loads((run_copy / "index" / "index.json").read_text())["format"] == 3


def files_of(run):
    return sorted(path for name in ("model", "index") for path in (run / name).rglob("*") if path.is_file())


@pytest.mark.parametrize("harm", ["alter", "remove", "cut"])
def test_damage_to_any_file_that_answers_depend_on_is_found(run_copy, harm):
    """The tokenizer, the vectors, the names, the calibration: none of it may change answers in silence."""
    untouched = {path: path.read_bytes() for path in files_of(run_copy)}
    assert {"tokenizer.json", "entities.npy", "names.npy", "calibration.json"} <= {path.name for path in untouched}
    for path, content in untouched.items():
        if path.name in ("manifest.json", "index.json") and harm == "remove":
            continue  # the first is of an old version then; without the second it is made anew
        if harm == "remove":
            path.unlink()
        else:
            half = len(content) // 2
            path.write_bytes(content[:half] + (bytes([content[half] ^ 4]) + content[half + 1 :]) * (harm == "alter"))
        with pytest.raises(SatkgcError) as error:
            Completer.load(run_copy)
        assert "\n" not in str(error.value)
        path.write_bytes(content)
    Completer.load(run_copy)


def test_what_a_stopped_preparation_left_counts_only_as_it_was_written(run_copy, prepared, monkeypatch):
    """A page that never reached the disk is zeros; one row of such would be an entity that answers nothing."""
    monkeypatch.setattr("satkgc.completion.prepare.CHUNK", {"cpu": 30})
    with monkeypatch.context() as patch:
        patch.setattr(INDEXES["exact"], "build", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Completer.prepare(run_copy)
    (file,) = (run_copy / ".index.partial").glob("*.part.npy")
    rows = np.lib.format.open_memmap(file, "r+")
    rows[3] = 0
    rows[40] *= -1
    rows.flush()
    monkeypatch.undo()
    monkeypatch.setattr("satkgc.completion.prepare.CHUNK", {"cpu": 30})
    encode, again = TextModel.encode_entities, []
    monkeypatch.setattr(
        TextModel, "encode_entities", lambda model, entities: again.append(entities[0]) or encode(model, entities)
    )
    Completer.prepare(run_copy)
    assert again == [0, 30]
    whole, mended = (np.load(run / "index" / "entities.npy") for run in (prepared, run_copy))
    np.testing.assert_allclose(whole, mended, atol=1e-6)


@pytest.mark.parametrize("limit", [4_000, 11_000])
def test_a_full_disk_is_one_line_and_what_was_encoded_is_kept(run_copy, limit):
    """A limit on the size of files, as a full disk; a memory map on one would be the end of the process."""
    before = {path.name: path.read_bytes() for path in (run_copy / "index").iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
    try:
        with pytest.raises(SatkgcError, match=r"the disk is full; the run is as it was; make room and run `satkgc"):
            Completer.prepare(run_copy)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in (run_copy / "index").iterdir()} == before
    Completer.prepare(run_copy)
    Completer.load(run_copy)


def test_a_run_that_cannot_be_written_answers_or_says_so_in_one_line(run_copy, completer, monkeypatch):
    def read_only(*_args, **_options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(FileLock, "acquire", read_only)
    assert Completer.load(run_copy).tails("Q3", "near") == completer.tails("Q3", "near")
    shutil.rmtree(run_copy / "index")
    with pytest.raises(SatkgcError, match=r"cannot be written \(Read-only file system\); prepare it in a place that"):
        Completer.load(run_copy)


def test_an_index_of_format_1_opens(run_copy, completer):
    as_format_1(run_copy)
    again = Completer.load(run_copy)
    assert again.tails("Q3", "near", k=90) == completer.tails("Q3", "near", k=90)
    assert again.relations("Q3", "Q4") == completer.relations("Q3", "Q4")
    assert again.relations("Q3", "Q4")[0].probability is not None
    file = run_copy / "index" / "index.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "model": "another"}))
    with pytest.raises(SatkgcError, match="the index does not belong to this run's model"):
        Completer.load(run_copy)


def test_the_checksum_of_format_2_is_of_every_file_that_holds_weights(tmp_path):
    with pytest.raises(SatkgcError, match="no weights of a model here"):
        model_checksum(tmp_path)
    (tmp_path / "query").mkdir()
    (tmp_path / "query" / "model.safetensors").write_bytes(b"one")
    sums = [model_checksum(tmp_path)]
    (tmp_path / "loss.safetensors").write_bytes(b"two")
    sums.append(model_checksum(tmp_path))
    (tmp_path / "README.md").write_text("no weights")
    assert model_checksum(tmp_path) == sums[1] != sums[0]
    (tmp_path / "query" / "model.safetensors").write_bytes(b"three")
    assert model_checksum(tmp_path) not in sums
