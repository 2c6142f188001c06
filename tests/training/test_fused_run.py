"""A fused run: trained by its recipe, killed at every stage, made of runs that exist, moved, asked without its data."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from test_resume import Child, worker  # noqa: F401

import satkgc
from fused_runs import overrides
from satkgc.analysis.experiments import Row, make_result
from satkgc.errors import SatkgcError
from satkgc.evaluation import evaluate
from satkgc.kg import KnowledgeGraph
from satkgc.models import FusedModel, Questions
from satkgc.training import fuse_or_stop, make_config, train_or_stop
from satkgc.training.fuse import expert_names
from tasks import small_graph

KG = small_graph()


@pytest.fixture(scope="module")
def whole(tiny_backbone, tmp_path_factory):
    """A run that nobody stopped."""
    folder = tmp_path_factory.mktemp("fused") / "run"
    return train_or_stop(KG, "fused", folder, overrides=overrides(tiny_backbone))[0]


def outcome(run):
    """All that a fused run is, but for times."""
    model = {path.name: path.read_bytes() for path in (run / "model").iterdir()}
    return model, json.loads((run / "metrics.json").read_text())["valid"]["both"]


def scores_of(model):
    head, relation, _ = KG.test.T
    return model.score(Questions(head.copy(), relation.copy()))


def test_its_experts_are_runs_and_their_figures_those_of_evaluation(whole):
    assert whole.finished
    assert list(whole.experts) == ["text", "complex", "paths"]
    fusion = json.loads((whole.folder / "model" / "fusion.json").read_text())
    for name, expert in whole.experts.items():
        assert expert.finished
        assert not (expert.folder / "graph").exists(), "one graph for all"
        assert expert.kg.path == whole.kg.path
        expected = expert.metrics["valid"]["both"]["mrr"]
        assert fusion["experts"][name]["valid"]["mrr"] == pytest.approx(expected, abs=1e-6)
        alone = evaluate(whole.model("cpu").alone(name), whole.kg, "valid").metrics()["both"]["mrr"]
        assert alone == pytest.approx(expected, abs=1e-6), "the mixture's view of it ranks as it does"
    own = whole.evaluate("valid", device="cpu").metrics()["both"]["mrr"]
    assert own == whole.metrics["valid"]["both"]["mrr"]
    assert fusion["valid"]["mrr"] == pytest.approx(own, abs=1e-6)
    card = (whole.folder / "README.md").read_text()
    assert f"| **fused** | | | {own:.3f}" in card


def test_test_triples_and_validation_triples_are_only_for_the_fit(whole, tmp_path):
    """The scores of test questions are the same over a graph from which both are gone."""
    bare = KnowledgeGraph.from_arrays(KG.name, KG.entities, KG.relations, KG.train).save(tmp_path / "graph")
    experts = {name: expert.model_on(bare, "cpu") for name, expert in whole.experts.items()}
    without = FusedModel.load(whole.folder / "model", bare, whole.config.model, "cpu", experts)
    complete = whole.model("cpu")
    assert torch.equal(scores_of(without), scores_of(complete))
    head, relation, _ = KG.test.T
    asked = Questions(head.copy(), relation.copy())
    for name in whole.experts:  # each by itself: here one may have no weight
        assert torch.equal(without.alone(name).score(asked), complete.alone(name).score(asked)), name


def test_training_and_fit_do_not_see_test_triples(whole, tiny_backbone, tmp_path):
    without = KnowledgeGraph.from_arrays(KG.name, KG.entities, KG.relations, KG.train, KG.valid)
    run, _ = train_or_stop(without, "fused", tmp_path / "run", overrides=overrides(tiny_backbone))
    one, other = (json.loads((r.folder / "model" / "fusion.json").read_text()) for r in (run, whole))
    assert one["fit"] == other["fit"]
    assert torch.equal(scores_of(run.model("cpu")), scores_of(whole.model("cpu")))


def wait_for(found, seconds=100):
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.001)


def test_killed_at_every_stage_it_ends_as_one_that_was_not(whole, tiny_backbone, worker, tmp_path):  # noqa: F811
    KG.save(tmp_path / "graph")
    run = tmp_path / "run"
    job = {"kg": str(tmp_path / "graph"), "recipe": "fused", "resume": True, "output": str(tmp_path / "output.txt")}
    job |= {"overrides": overrides(tiny_backbone)}
    text, plain, paths = (run / "experts" / name for name in ("text", "complex", "paths"))
    stages = {
        "the first expert": lambda: (text / "checkpoints" / "step-00000003").exists(),
        "between the two": lambda: (text / "metrics.json").exists(),
        "the second expert": lambda: (plain / "checkpoints" / "step-00000004").exists(),
        "the fit": lambda: (paths / "metrics.json").exists(),
        "the files of the mixture": lambda: any(run.glob(".model.partial*")) or (run / "model").exists(),
    }
    for stage, reached in stages.items():
        child = Child(worker, job, run)
        wait_for(reached)
        child.signal(signal.SIGKILL)
        assert child.end() == -signal.SIGKILL, stage
        assert not (run / "metrics.json").exists(), stage
    child = Child(worker, job, run)
    assert child.end() == 0
    assert outcome(run) == outcome(whole.folder)
    output = (tmp_path / "output.txt").read_text()
    assert output.count("expert 1 of 3: text") == 6
    assert "going on after step" in output


def test_stopped_by_a_signal_and_by_a_limit_it_goes_on(whole, tiny_backbone, tmp_path):
    stops = []
    for _ in range(60):
        limited = overrides(tiny_backbone) | {"training.max_minutes": 1e-9}
        run, stopped = train_or_stop(KG, "fused", tmp_path / "run", overrides=limited, resume=True)
        stops.append(stopped)
        if stopped is None:
            break
    assert set(stops[:-1]) == {"training.max_minutes"}
    assert len(stops) > 8  # a step each
    assert outcome(run.folder) == outcome(whole.folder)


def test_moved_it_opens_without_the_data(whole, tmp_path):
    expected = scores_of(whole.model("cpu"))
    shutil.copytree(whole.folder, tmp_path / "elsewhere")
    moved = satkgc.Run.load(tmp_path / "elsewhere")
    assert torch.equal(scores_of(moved.model("cpu")), expected)
    os.rename(tmp_path / "elsewhere" / "experts" / "complex", tmp_path / "complex")
    with pytest.raises(SatkgcError, match="cannot open the mixture"):
        moved.model("cpu")


def test_runs_that_exist_are_fused(whole, tmp_path):
    parts = [expert.folder for expert in whole.experts.values()]
    run, stopped = fuse_or_stop(parts, tmp_path / "run", device="cpu")
    assert stopped is None
    assert list(run.experts) == ["neighbours", "complex", "paths"], "named by their recipes"
    assert torch.equal(scores_of(run.model("cpu")), scores_of(whole.model("cpu")))
    assert not list(run.folder.glob("experts/*/checkpoints"))
    with pytest.raises(SatkgcError, match="there is a run here already"):
        fuse_or_stop(parts, tmp_path / "run")
    with pytest.raises(SatkgcError, match="another mixture was begun here"):
        fuse_or_stop(parts, tmp_path / "run", held_back=0.5, resume=True)
    before = outcome(run.folder)
    for name in ("metrics.json", "model"):  # as a kill during the fit leaves it
        path = run.folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    again, _ = fuse_or_stop(parts, tmp_path / "run", device="cpu", resume=True)
    assert outcome(again.folder) == before


def test_half_of_validation_is_held_back(whole, tmp_path):
    run, _ = fuse_or_stop([e.folder for e in whole.experts.values()], tmp_path / "run", held_back=0.5, device="cpu")
    fusion = json.loads((run.folder / "model" / "fusion.json").read_text())
    assert fusion["fit"]["triples"] == fusion["measured_on"]["held_back"] == len(KG.valid) // 2
    assert "novelty" not in fusion
    rows = np.sort(np.random.default_rng(0).permutation(len(KG.valid))[: len(KG.valid) // 2])
    measured = evaluate(run.model("cpu"), run.kg, "valid", run.config.evaluation, rows=rows).metrics()["both"]["mrr"]
    assert run.metrics["valid"]["both"]["mrr"] == measured
    assert run.metrics["valid"]["triples"] == len(rows)


def test_novelty_is_fitted_and_kept_with_the_weights(whole, tmp_path):
    run, _ = fuse_or_stop([e.folder for e in whole.experts.values()], tmp_path / "run", novelty=True, device="cpu")
    fusion = json.loads((run.folder / "model" / "fusion.json").read_text())
    mixture = run.model("cpu").mixture
    assert fusion["novelty"] == mixture.general_novelty
    assert mixture.novelty.shape == (2 * KG.num_relations,)


def test_runs_that_do_not_fit_together_are_refused_in_one_line(whole, tmp_path):
    text, plain, _ = (expert.folder for expert in whole.experts.values())
    config = whole.experts["complex"].config
    other, _ = train_or_stop(small_graph(seed=1), out=tmp_path / "other", config=config)
    unfinished = tmp_path / "unfinished"
    shutil.copytree(tmp_path / "other", unfinished)
    (unfinished / "metrics.json").unlink()
    for runs, what in (
        ([text, other.folder], "of another graph than"),
        ([text], "a mixture of one"),
        ([text, plain, text], "the same run twice"),
        ([whole.folder, text], "cannot be an expert"),
        ([unfinished, text], "not finished"),
    ):
        with pytest.raises(SatkgcError, match=what) as refusal:
            fuse_or_stop(runs, tmp_path / "run")
        assert "\n" not in str(refusal.value)
        assert not (tmp_path / "run").exists()


def test_a_row_of_results_is_made_of_it(whole):
    row = Row("a-row", "group", "label", "small", "fused", backbone="tiny")
    result = make_result(row, whole, whole.evaluate("test", device="cpu"))
    assert result.steps == sum(expert.metrics["steps"] for expert in whole.experts.values()) == 17
    assert result.config["experts"]["text"]["model"]["encoder"]["backbone"] == "tiny"
    assert result.valid_mrr == whole.metrics["valid"]["both"]["mrr"]


def test_several_seeds_of_one_recipe_are_numbered(whole):
    text, plain, _ = whole.experts.values()
    assert expert_names([text, plain, plain]) == ["neighbours", "complex-1", "complex-2"]
    own = SimpleNamespace(config=SimpleNamespace(recipe="mine/complex-1.toml"))
    assert expert_names([plain, plain, own]) == ["complex-1", "complex-2", "complex-1-1"], "each has a name of its own"


def test_settings_reach_the_experts():
    config = make_config("fused", overrides={"training.seed": 7, "experts.text.training.epochs": "2"})
    assert [part.training.seed for part in config.experts.values()] == [7] * len(config.experts)
    assert config.experts["text"].training.epochs == 2.0
    short = make_config("fused", overrides={"training.steps": 7}).experts.values()
    assert [part.training.steps for part in short] == [7, 7, 7]
    assert config.experts["text"].recipe == "neighbours"
    own = make_config("fused", overrides={"training.seed": 7, "experts.complex.training.seed": 8})
    assert own.experts["complex"].training.seed == 8
    more = make_config("fused", overrides={"experts.second.recipe": "complex", "experts.second.model.dim": 5})
    assert more.experts["second"].model.dim == 5
    fewer = make_config("fused", overrides={"experts.complex.recipe": "none"})
    assert "complex" not in fewer.experts
    read = make_config("fused", overrides={"model.encoder.backbone": "somewhere"})
    assert read.experts["text"].model.encoder.backbone == "somewhere"
    assert read.experts["complex"] == make_config("complex")
    assert config.total_steps(10_000) == sum(part.total_steps(10_000) for part in config.experts.values())
    graph = make_config("fused", benchmark="WN18RR").experts
    assert graph["complex"] == make_config("complex", benchmark="WN18RR")
    shorter = {"training.epochs": graph["text"].training.epochs}
    assert graph["text"] == make_config("neighbours", benchmark="WN18RR", overrides=shorter)
    assert graph["text"].training.epochs < make_config("neighbours", benchmark="WN18RR").training.epochs


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ({"training.clip": 3}, "say of which: experts.text.training.clip"),
        ({"experts.tekst.training.epochs": 3}, "there is no such expert"),
        ({"experts.text.training.epoch": 3}, "did you mean training.epochs"),
        ({"experts.text.recipe": "nobody's"}, "unknown recipe"),
        ({"experts.a b.recipe": "complex"}, "^'a b' is no name of an expert; use letters"),
        ({"experts.more.recipe": "quick"}, "^the expert more is a fused model itself; name its experts"),
    ],
)
def test_settings_that_reach_nobody_are_refused(setting, what):
    with pytest.raises(SatkgcError, match=what):
        make_config("fused", overrides=setting)


def test_a_graph_without_validation_triples_is_refused_before_any_expert_is_trained(whole, tmp_path):
    graph = replace(KG, valid=KG.valid[:0])
    for recipe in ("fused", "quick"):
        with pytest.raises(SatkgcError, match="has no validation triples to fit a mixture on"):
            train_or_stop(graph, recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    parts = [expert.folder for expert in whole.experts.values()]
    with pytest.raises(SatkgcError, match="held back leave none to fit a mixture on"):
        fuse_or_stop(parts, tmp_path / "run", held_back=0.999)
    assert not (tmp_path / "run").exists()


def test_a_file_of_ones_own_extends_the_recipe(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('extends = "fused"\n[experts.complex.model]\ndim = 6\n[experts.more]\nrecipe = "simkgc"\n')
    config = make_config(file)
    assert config.experts["complex"].model.dim == 6
    assert list(config.experts) == [*make_config("fused").experts, "more"]
    file.write_text('extends = "fused"\n[experts.complex.model]\ndimension = 6\n')
    with pytest.raises(SatkgcError, match=r"experts.complex.model.dim.*mine.toml|mine.toml.*experts.complex.model.dim"):
        make_config(file)


def test_what_a_file_says_of_the_whole_holds_for_each_expert_as_what_is_set_does(tmp_path):
    base, mine = tmp_path / "base.toml", tmp_path / "mine.toml"
    base.write_text('extends = "fused"\n[training]\nseed = 7\nepochs = 3\n[experts.complex.training]\nsteps = 9\n')
    config = make_config(base, benchmark="WN18RR", overrides={"experts.more.recipe": "simkgc"})
    assert {part.training.seed for part in (config, *config.experts.values())} == {7}
    lengths = {name: (part.training.epochs, part.training.steps) for name, part in config.experts.items()}
    assert lengths.pop("complex")[1] == 9  # more is said of this one
    assert set(lengths.values()) == {(3.0, None)}  # over the recipe's own for the graph
    mine.write_text('extends = "base"\n[training]\nepochs = 4\n[graph."UMLS".training]\nseed = 8\n')
    plain, umls = (make_config(mine, benchmark=benchmark) for benchmark in (None, "UMLS"))
    assert {part.training.seed for part in plain.experts.values()} == {7}
    assert {part.training.seed for part in umls.experts.values()} == {8}
    assert all((part.training.epochs, part.training.steps) == (4.0, None) for part in plain.experts.values())


def test_a_file_may_leave_an_expert_out(tmp_path):
    mine, nearer = tmp_path / "mine.toml", tmp_path / "nearer.toml"
    mine.write_text('extends = "fused"\n[experts.paths]\nrecipe = "none"\n')
    assert list(make_config(mine).experts) == ["text", "complex"]
    nearer.write_text('extends = "mine"\n[experts.paths]\nrecipe = "paths"\n')
    assert set(make_config(nearer).experts) == {"text", "complex", "paths"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[training]\nclip = 3", "training.clip is a setting of the experts.*; say of which: experts.text.training.c"),
        ("[sampling]\nbatch_size = 8", "sampling.batch_size is a setting of the experts"),
        ("[experts.tekst.training]\nepochs = 3", "there is no expert tekst; there are text, complex, paths"),
        ('[graph."UMLS".experts.tekst.training]\nepochs = 3', "there is no expert tekst"),
        ('[experts.paths]\nrecipe = "none"\n[graph."UMLS".experts.paths.training]\nepochs = 3', "no expert paths"),
        ("[experts]\ntext = 3", r"experts has 3; it takes tables, \[experts.NAME\]"),
        ("graph = 3", r"graph has 3; it takes tables, \[graph.NAME\]"),
        ("[experts.text]\nrecipe = 3", "3 is no recipe; give its name"),
    ],
)
def test_what_reaches_no_expert_is_refused_with_the_file_that_says_it(tmp_path, text, message):
    file = tmp_path / "mine.toml"
    file.write_text(f'extends = "fused"\n{text}\n')
    with pytest.raises(SatkgcError, match=rf"mine\.toml: .*{message}"):
        make_config(file)
