"""Runs that take in what is new without training: against models that read the grown graph from nothing."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from fused_runs import overrides
from little_world import little_world
from satkgc.cli import app
from satkgc.completion import Completer, checking, proposals, update_run, verify_folder
from satkgc.errors import SatkgcError
from satkgc.kg import DECISIONS, Decision, Decisions
from satkgc.manifest import write_json
from satkgc.models import Questions, TextModel, VectorModel
from satkgc.training import RunFolder, train_or_stop
from tasks import small_graph

pytest_plugins = ["world"]

NEW = "head,relation,tail\nQ85,near,X1\nX1,born_in,Q8\nQ5,knows,Q9\n"  # Q85 has few neighbours
TEXTS = "id,name,description\nX1,Kalopia,a town by the sea\n"


@pytest.fixture(scope="module")
def fused_run(tmp_path_factory, tiny_backbone):
    """Text, ComplEx and paths, of seconds of training, prepared."""
    folder = tmp_path_factory.mktemp("update") / "fused"
    train_or_stop(small_graph(), "fused", out=folder, overrides=overrides(tiny_backbone))
    Completer.load(folder)
    return folder


@pytest.fixture
def run(run_copy):
    """A run whose texts name neighbours, and that may be changed."""
    write_json(run_copy / "metrics.json", {"finished": True})
    return run_copy


@pytest.fixture
def new(tmp_path):
    (tmp_path / "new.csv").write_text(NEW)
    (tmp_path / "texts.csv").write_text(TEXTS)
    return tmp_path


def update(run, folder, **options):
    return update_run(run, [folder / "new.csv"], entities=[folder / "texts.csv"], **options)


def state(run):
    """Every file of a run that matters."""
    return {
        path.relative_to(run).as_posix(): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def everyone(kg):
    return np.arange(kg.num_entities, dtype=np.int32)


def test_one_can_ask_at_once_and_everything_follows(run, new):
    Decisions(run / DECISIONS).add(Decision("Q1", "near", "Q2", "reject"))
    logic, calibration = (run / "relations.toml").read_bytes(), (run / "index" / "calibration.json").read_bytes()
    before = Completer.load(run)
    done = update(run, new)
    after = Completer.load(run)
    assert (done.run, done.version, done.unknown) == (run, 2, ())
    assert (done.growth.entities, done.growth.triples, done.growth.texts) == (1, 3, 0)
    assert after.search("kalop", 1)[0].id == "X1"
    assert {a.id for a in after.tails("Q85", "near", k=500, drop_known=False) if a.known} >= {"X1"}
    assert "X1" not in {a.id for a in after.tails("Q85", "near", k=500, drop_known=True)}, (
        "what is known is no new answer"
    )
    assert "X1" in {a.id for a in after.tails("Q4", "near", k=500)}, "what is new is one"
    assert after.knows("X1", "born_in", "Q8")
    assert after.tails("Kalopia", "near", k=3)[0].probability is not None
    assert {n.id for n in after.entity("X1").neighbours} == {"Q85", "Q8"}
    assert after.evidence("Q85", "near", "X1").known
    assert (run / "relations.toml").read_bytes() == logic
    assert (run / "index" / "calibration.json").read_bytes() == calibration
    assert [d.verdict for d in Decisions(run / DECISIONS).last().values()] == ["reject"]
    old = {a.id: a.score for a in before.tails("Q60", "knows", k=90)}
    same = [a for a in after.tails("Q60", "knows", k=91) if a.id in old and old[a.id] == pytest.approx(a.score)]
    assert len(same) > 40, "most of the graph is as it was"
    assert not verify_folder(run).altered
    assert RunFolder.load(run).updates[0]["triples"] == 3
    assert not list(run.parent.glob(".*partial*"))


def test_only_what_reads_otherwise_is_encoded_and_the_rest_is_as_if(run, new, monkeypatch):
    old = RunFolder.load(run).model("cpu")
    encoded = []
    encode = TextModel.encode_entities

    def counted(self, entities, *args, **options):
        encoded.extend(entities.tolist())
        return encode(self, entities, *args, **options)

    monkeypatch.setattr(TextModel, "encode_entities", counted)
    update(run, new)
    monkeypatch.undo()
    model = RunFolder.load(run).model("cpu")
    kg = model.kg

    def words(model, entity):
        return model.entity_tokens(np.array([entity], np.int32)).ids.tolist()

    changed = [e for e in range(kg.num_entities) if e >= old.kg.num_entities or words(model, e) != words(old, e)]
    assert sorted(encoded) == changed
    assert kg.entities.find("X1") in changed
    assert kg.entities.find("Q85") in changed, "its text names the new neighbour"
    assert len(changed) < 8
    np.testing.assert_allclose(Completer.load(run).vectors(), model.encode_entities(everyone(kg)), atol=1e-5)


def test_the_first_decision_counts_that_is_made_during_an_update(run, new):
    assert not (run / DECISIONS).exists()

    def decide(doing):
        if doing == "encoding what changed":
            Decisions(run / DECISIONS).add(Decision("Q1", "near", "Q2", "accept"))

    update(run, new, on_progress=decide)
    assert [d.verdict for d in Decisions(run / DECISIONS).last().values()] == ["accept"]


def test_corrected_texts_reach_the_neighbours_that_name_them(run, tmp_path):
    entity = next(e for e in range(90) if little_world().adjacency.degree[e] > 2)
    (tmp_path / "fixed.csv").write_text(f"id,name\nQ{entity},Trulala\n")
    with pytest.raises(SatkgcError, match="--correct"):
        update_run(run, [], entities=[tmp_path / "fixed.csv"])
    done = update_run(run, [], entities=[tmp_path / "fixed.csv"], correct=True)
    assert (done.growth.texts, done.growth.triples) == (1, 0)
    model = RunFolder.load(run).model("cpu")
    np.testing.assert_allclose(Completer.load(run).vectors(), model.encode_entities(everyone(model.kg)), atol=1e-5)
    assert Completer.load(run).search("trulala", 1)[0].id == f"Q{entity}"


def test_a_version_beside_the_old_one(run, new, tmp_path):
    before = state(run)
    done = update(run, new, out=tmp_path / "two")
    assert state(run) == before
    assert done.run == tmp_path / "two"
    assert Completer.load(tmp_path / "two").knows("Q5", "knows", "Q9")
    assert Completer.load(tmp_path / "two").info().run_version.number == 2
    assert Completer.load(run).info().run_version.number == 1
    Decisions(run / DECISIONS).add(Decision("Q1", "near", "Q2", "reject"))
    assert not (tmp_path / "two" / DECISIONS).exists(), "each has its own"
    with pytest.raises(SatkgcError, match="this place is taken"):
        update(run, new, out=tmp_path / "two")
    (tmp_path / "link").symlink_to(run)
    update(tmp_path / "link", new)
    assert (tmp_path / "link").is_symlink()
    assert Completer.load(run).info().run_version.number == 2


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ("head,relation,tail\nQ1,neer,Q2\n", {}, r"new.csv: .*no relation 'neer'.*did you mean 'near'"),
        (
            "head,relation,tail,head_name,tail_name\nQ1,near,Q2,Oslo,x\n",
            {},
            r"entity 'Q1' is '.*' in the graph and 'Os",
        ),
        ("head,relation,tail\nQ1,near,\n", {}, r"new.csv:2: the tail of this triple is empty"),
        ("head,relation,tail\nQ1,near,Q2\nQl,near,Q2\n", {}, r"new.csv:3: .*no entity 'Ql', which looks like 'Q1'"),
        ("", {}, "new.csv"),
        ("head,relation,tail\nQ1,near,Q2\n", {"languages": "de"}, "--languages says nothing of tables"),
    ],
)
def test_what_contradicts_is_one_line_and_nothing_is_lost(run, tmp_path, table, options, said):
    (tmp_path / "new.csv").write_text(table)
    before = state(run)
    with pytest.raises(SatkgcError, match=said) as told:
        update_run(run, [tmp_path / "new.csv"], **options)
    assert "\n" not in str(told.value)
    assert state(run) == before
    assert not list(tmp_path.glob(".*partial*"))


def test_work_that_was_stopped_before_an_update_does_not_go_on_after_it(run, new, tmp_path, monkeypatch):
    def stopping(kept):
        def keep(*arguments):
            kept(*arguments)
            raise KeyboardInterrupt

        return keep

    monkeypatch.setattr(proposals, "BATCH", 8)
    monkeypatch.setattr(checking, "BATCH", 50)
    calls = (lambda c: c.propose(tmp_path / "out.csv", n=20), lambda c: c.check(20, out=tmp_path / "doubts.csv"))
    for call, module in zip(calls, (proposals, checking), strict=True):
        with monkeypatch.context() as patch:
            patch.setattr(module, "SAVE_SECONDS", 0.0)
            patch.setattr(module, "keep", stopping(module.keep))
            with pytest.raises(KeyboardInterrupt):
                call(Completer.load(run))
    update(run, new)
    for call, what in zip(calls, ("proposal", "check"), strict=True):
        with pytest.raises(SatkgcError, match=f"an unfinished {what} with other settings"):
            call(Completer.load(run))


def test_nothing_new_leaves_the_run_and_an_unfinished_one_is_refused(run, tmp_path):
    known = little_world().train[0]
    (tmp_path / "new.csv").write_text(
        f"head,relation,tail\nQ{known[0]},{['born_in', 'capital_of', 'knows', 'near'][known[1]]},Q{known[2]}\n"
    )
    before = state(run)
    done = update_run(run, [tmp_path / "new.csv"])
    assert not done.growth
    assert done.version == 1
    assert state(run) == before
    (run / "metrics.json").unlink()
    with pytest.raises(SatkgcError, match="not finished"):
        update_run(run, [tmp_path / "new.csv"])


def test_the_command_says_what_was_taken_in_and_refuses_in_one_line(run, new):
    def command(*arguments):
        return CliRunner().invoke(app, ["update", str(run), *map(str, arguments), "--device", "cpu"])

    done = command(new / "new.csv", "--entities", new / "texts.csv")
    assert done.exit_code == 0, done.output
    assert "3 new triples, 1 new entity; version 2, KnowledgeGraph('little world': 91 entities" in done.stdout
    assert "nothing is new" in command(new / "new.csv").stdout
    (new / "new.csv").write_text("head,relation,tail\nQ1,neer,Q2\n")
    refused = command(new / "new.csv")
    assert isinstance(refused.exception, SatkgcError)
    assert "--split" not in CliRunner().invoke(app, ["update", "--help"]).stdout.split("--split-column")[0]


@pytest.fixture(scope="module")
def grown_fused(fused_run, tmp_path_factory):
    """A fused run with a new entity in two triples, one of them of a new relation."""
    folder = tmp_path_factory.mktemp("grown")
    (folder / "new.csv").write_text("head,relation,tail\nx,r0,e5\nx,made_of,e6\n")
    (folder / "texts.csv").write_text("id,name\nx,aaaa x\n")
    return update(fused_run, folder, out=folder / "run", new_relations=True)


def speaks(answer):
    return {expert.name for expert in answer.experts if expert.share is not None}


def test_a_fused_run_says_what_an_expert_lacks_and_the_others_answer(grown_fused):
    told = "; ".join(grown_fused.unknown)
    assert "complex: nothing is learnt of 1 new entity ('x') until it is trained; text and paths answer" in told
    assert "complex, paths: nothing is learnt of the new relation 'made_of' until it is trained; text answers" in told
    completer = Completer.load(grown_fused.run)
    answers = completer.tails("x", "r1", k=3)
    assert all(np.isfinite(a.score) for a in answers)
    assert speaks(answers[0]) == {"text", "paths"}
    (by_relation,) = completer.tails("e1", "made_of", k=1)
    assert speaks(by_relation) == {"text"}
    usual = completer.tails("e1", "r1", k=41)
    assert speaks(usual[0]) == {"text", "complex", "paths"}
    assert "x" in {a.id for a in usual}


def test_grown_experts_are_as_if_read_from_nothing(grown_fused, fused_run):
    run, old = RunFolder.load(grown_fused.run), RunFolder.load(fused_run).model("cpu")
    model = run.model("cpu")
    for i, name in enumerate(model.names):
        expert = model.expert(name)
        if isinstance(expert, VectorModel):
            vectors = expert.encode_entities(everyone(model.kg))
            np.testing.assert_allclose(model.get_buffer(f"vectors{i}").numpy(), vectors, atol=1e-5)
    complex_, before = model.expert("complex"), old.expert("complex")
    size = old.kg.num_relations
    torch.testing.assert_close(complex_.entities.weight[:-1], before.entities.weight)
    torch.testing.assert_close(
        complex_.relations.weight.view(2, size + 1, -1)[:, :-1].flatten(0, 1), before.relations.weight
    )
    assert not complex_.entities.weight[-1].any()
    assert json.loads((run.folder / "model" / "fusion.json").read_text())["valid"]


def test_no_path_goes_along_a_relation_without_weights(grown_fused):
    paths = RunFolder.load(grown_fused.run).model("cpu").expert("paths")
    new = paths.kg.num_relations - 1
    assert (paths.kg.train[:, 1] == new).sum() == 1
    assert not np.isin(paths.graph.relation.numpy(), [new, 2 * new + 1]).any()
    assert len(paths.graph.relation) == 2 * (len(paths.kg.train) - 1)


def test_an_embedding_model_alone_answers_nothing_about_what_is_new(fused_run, tmp_path, caplog):
    run = tmp_path / "complex"
    shutil.copytree(fused_run / "experts" / "complex", run)
    shutil.copytree(fused_run / "graph", run / "graph")
    (tmp_path / "new.csv").write_text("head,relation,tail\nx,r0,e5\n")
    done = update_run(run, [tmp_path / "new.csv"])
    assert done.unknown == (
        "EmbeddingModel: nothing is learnt of 1 new entity ('x') until it is trained; nobody answers",
    )
    completer = Completer.load(run)
    asked = (
        lambda: completer.tails("x", "r0"),
        lambda: completer.relations("x", "e5"),
        lambda: completer.relations("e5", "x"),
        lambda: completer.evidence("x", "r0", "e5"),
        lambda: completer.evidence("e5", "r0", "x", asked="relation"),
        lambda: completer.doubt("x", "r0", "e5"),
    )
    for ask in asked:
        with pytest.raises(SatkgcError, match="training saw no triples of the entity 'x'"):
            ask()
    with caplog.at_level("WARNING"):
        assert "x" not in {end for doubt in completer.check(1000) for end in (doubt.head, doubt.tail)}
    assert "left out: 1 statement of which the model has learnt nothing" in caplog.text
    completer.propose(tmp_path / "missing.csv", n=10_000, second_answers=True, implied=True)
    assert ",x," not in (tmp_path / "missing.csv").read_text().replace("\n", ",")
    assert "x" not in {a.id for a in completer.tails("e1", "r0", k=50)}
    second = update_run(run, [tmp_path / "new.csv"])
    assert not second.growth
    (tmp_path / "new.csv").write_text("head,relation,tail\nx,r1,e6\ny,r0,e6\n")
    assert "1 new entity ('y')" in update_run(run, [tmp_path / "new.csv"]).unknown[0]
    with pytest.raises(SatkgcError, match="entity 'x'"):
        Completer.load(run).tails("x", "r0")
    on, _ = train_or_stop(RunFolder.load(run).kg, out=tmp_path / "on", from_run=run)
    weights = on.model("cpu").entities.weight
    assert weights.any(1).all(), "rows of which nothing was learnt are drawn, not taken"


def test_a_frozen_model_reads_what_is_new_and_keeps_its_vectors(tiny_backbone, tmp_path):
    settings = {"training.device": "cpu", "sampling.batch_size": 16, "training.steps": 2, "training.validations": 1}
    settings |= {"model.encoder.backbone": str(tiny_backbone), "model.hidden": 16, "model.text.max_tokens": 30}
    train_or_stop(small_graph(), "frozen", out=tmp_path / "run", overrides=settings)
    (tmp_path / "new.csv").write_text("head,relation,tail\nx,made_of,e5\n")
    (tmp_path / "texts.csv").write_text("id,name,description\nx,aaaa x,\ne4,uuuu 44,\n")
    with pytest.raises(SatkgcError, match="--correct"):
        update(tmp_path / "run", tmp_path, new_relations=True)
    done = update(tmp_path / "run", tmp_path, new_relations=True, correct=True)
    assert (
        "FrozenModel: nothing is learnt of the new relation 'made_of' until it is trained; nobody answers"
        in done.unknown
    )
    model = RunFolder.load(tmp_path / "run").model("cpu")
    vectors, model._vectors = model.vectors, None
    torch.testing.assert_close(vectors, model.vectors, atol=1e-5, rtol=1e-4)
    completer = Completer.load(tmp_path / "run")
    assert "x" in {a.id for a in completer.tails("e1", "r0", k=50)}
    assert completer.tails("aaaa x", "r0", k=1)
    with pytest.raises(SatkgcError, match="training saw no triples of the relation 'made_of'"):
        completer.tails("e1", "made_of")
    assert not model.knows_questions(Questions(np.array([0], np.int32), np.array([3], np.int32))).any()
    assert {a.id for a in Completer.load(tmp_path / "run").relations("e1", "e5")} == {"r0", "r1", "r2"}
