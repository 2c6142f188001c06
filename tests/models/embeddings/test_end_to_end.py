"""Every recipe of embeddings from a file of bare ids to answers, by the commands that a user types; bad input told."""

from __future__ import annotations

import json
import time

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from fastapi.testclient import TestClient
from typer.testing import CliRunner

import satkgc
from graphs import graph_of
from satkgc.cli import app
from satkgc.errors import SatkgcError
from satkgc.models import INTERACTIONS, Questions
from satkgc.serving import create_app
from satkgc.training import train_or_stop
from tasks import small_graph

QUICK = {"model.dim": 6, "training.steps": 40, "training.validations": 2, "training.device": "cpu"}
RECIPES = [*INTERACTIONS, "rotate-saam"]


def command(*words):
    """Run a command to its end; what it printed."""
    outcome = CliRunner().invoke(app, [str(word) for word in words])
    assert outcome.exit_code == 0, (outcome.output, outcome.exception)
    return outcome.stdout


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A graph of bare ids: three files of triples, no names, no texts."""
    triples, folder = small_graph(triples=500).train, tmp_path_factory.mktemp("bare")
    for split, rows in {"train": triples[:-80], "valid": triples[-80:-10], "test": triples[-10:]}.items():
        (folder / f"{split}.tsv").write_text("".join(f"n{h}\tp{r}\tn{t}\n" for h, r, t in rows))
    return folder


@pytest.fixture(scope="module", params=RECIPES)
def run(request, bare, tmp_path_factory):
    """A run of each recipe."""
    out = tmp_path_factory.mktemp("runs") / request.param
    settings = [word for name, value in QUICK.items() for word in ("--set", f"{name}={value}")]
    command("train", bare, "--recipe", request.param, "--out", out, *settings)
    return out


def test_it_is_logged_evaluated_and_compared(run, tmp_path):
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert [record["step"] for record in log if "validation" in record] == [20, 40]
    assert all(np.isfinite(record["loss"]) for record in log if "loss" in record)
    ranks = tmp_path / "ranks.parquet"
    metrics = json.loads(command("evaluate", run, "--split", "test", "--json", "--ranks", ranks))
    assert 0 < metrics["both"]["mrr"] <= 1
    assert "mrr" in command("compare", ranks, ranks, "--json").lower()


def test_it_completes_proposes_and_serves_with_probabilities(run, tmp_path):
    answers = json.loads(command("complete", run, "--head", "n3", "--relation", "p0", "--k", "3", "--json"))
    assert "probability" in json.dumps(answers)
    command("propose", run, tmp_path / "new.tsv", "--n", "5")
    assert 1 <= len((tmp_path / "new.tsv").read_text().splitlines()) <= 6
    completer = satkgc.Run.load(run).completer("cpu")
    direct = completer.tails("n3", "p0", k=3)
    assert all(0 <= answer.probability <= 1 for answer in direct)
    with TestClient(create_app(lambda: completer), base_url="http://127.0.0.1") as client:
        while client.get("/health").json()["status"] == "loading":
            time.sleep(0.01)
        served = client.post("/api/v1/complete", json={"head": "n3", "relation": "p0", "k": 3})
        assert served.status_code == 200, served.text
        assert [a["id"] for a in served.json()["answers"]] == [a.id for a in direct]


def numpy_score(config, h, r, t, core):
    """The score by the words of the model card."""

    def halves(vector):
        return vector[: len(vector) // 2] + 1j * vector[len(vector) // 2 :]

    name = config.interaction
    if name == "distmult":
        return (h * r * t).sum()
    if name == "complex":
        return (halves(h) * halves(r) * halves(t).conj()).sum().real
    if name == "tucker":
        return np.einsum("ijk,i,j,k", core, h, r, t)
    if name == "transe":
        difference = h + r - t
    elif name == "rotate":
        difference = halves(h) * np.exp(1j * r) - halves(t)
    else:
        move, scale, angle = np.split(r, [2 * config.dim, 4 * config.dim])
        difference = halves(h * scale) * np.exp(1j * angle) + halves(move) - halves(t)
    return -(np.abs(difference) ** 2).sum()  # the recipes' distance is squared


def test_exported_vectors_score_as_the_card_says(run, tmp_path):
    command("export", run, tmp_path / "parquet", "--format", "parquet")
    command("export", run, tmp_path / "npy", "--format", "npy")
    opened = satkgc.Run.load(run)
    model, kg = opened.model("cpu"), opened.kg
    entities, relations = (np.load(tmp_path / "npy" / f"{name}.npy") for name in ("entities", "relations"))
    core = np.load(tmp_path / "npy" / "core.npy") if model.config.interaction == "tucker" else None
    asked = Questions(np.array([3, 4], np.int32), np.array([0, kg.num_relations + 1], np.int32))
    scores = model.score(asked).numpy()
    for row, (entity, relation) in enumerate(zip(asked.entities, asked.relations, strict=True)):
        for tail in (0, 7):
            expected = numpy_score(model.config, entities[entity], relations[relation], entities[tail], core)
            assert scores[row, tail] == pytest.approx(expected, rel=1e-3, abs=1e-4)
    table = pq.read_table(tmp_path / "parquet" / "relations.parquet")
    assert table["id"].to_pylist() == kg.relations.ids.to_pylist() * 2
    assert table["inverse"].to_pylist() == [False] * kg.num_relations + [True] * kg.num_relations
    assert np.array_equal(np.stack(table["vector"].to_numpy()), relations)
    assert np.array_equal(
        np.stack(pq.read_table(tmp_path / "parquet" / "entities.parquet")["vector"].to_numpy()), entities
    )
    assert (tmp_path / "npy" / "ids.txt").read_text().split() == kg.entities.ids.to_pylist()
    assert (tmp_path / "npy" / "relation_ids.txt").read_text().split() == kg.relations.ids.to_pylist()
    card = (tmp_path / "npy" / "README.md").read_text()
    assert "The score of (h, r, t) is" in card
    assert "length 1" not in card


def test_what_training_has_not_seen_is_refused_but_evaluated(tmp_path):
    rng = np.random.default_rng(0)
    train = np.unique(rng.integers(0, [18, 2, 18], (80, 3)), axis=0)
    kg = graph_of(train, 20, 3, valid=[(0, 0, 1), (18, 1, 3)], test=[(0, 2, 1), (18, 0, 19)])
    run, _ = train_or_stop(kg, "complex", tmp_path / "run", overrides=QUICK)
    assert run.evaluate("test", device="cpu").metrics()["both"]["count"] > 0
    completer = satkgc.Run.load(tmp_path / "run").completer("cpu")
    assert len(completer.tails("e0", "r0", k=3)) == 3
    for ask, name in (
        (lambda: completer.tails("e18", "r0"), "entity 'e18'"),
        (lambda: completer.heads("r1", "e19"), "entity 'e19'"),
        (lambda: completer.tails("e0", "r2"), "relation 'r2'"),
        (lambda: completer.heads("r2", "e0"), "relation 'r2'"),
    ):
        with pytest.raises(SatkgcError, match=f"training saw no triples of the {name}: it has no embedding") as told:
            ask()
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_graph_with_one_relation_trains_and_answers(recipe, tmp_path):
    ring = [(i, 0, (i + 1) % 12) for i in range(12)]
    run, _ = train_or_stop(graph_of(ring, 12), recipe, tmp_path / "run", overrides=QUICK)
    assert run.finished
    assert len(satkgc.Run.load(tmp_path / "run").completer("cpu").tails("e0", "r0", k=2)) == 2


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_loss_that_diverges_ends_the_run_in_one_line_and_keeps_what_was_saved(recipe, bare, tmp_path):
    saved = {**QUICK, "training.max_minutes": 1e-9}
    assert train_or_stop(bare, recipe, tmp_path / "run", overrides=saved)[1] == "training.max_minutes"
    before = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())

    def spoil(step, model, batch, metrics):
        with torch.no_grad():  # what an absurd rate does to the weights
            for parameter in model.parameters():
                parameter.fill_(1e30)

    again = {"training.max_minutes": None}
    with pytest.raises(SatkgcError, match=r"the loss of step \d+ is .*training\.learning_rate") as told:
        train_or_stop(bare, None, tmp_path / "run", overrides=again, resume=True, callbacks=[spoil])
    assert "\n" not in str(told.value)
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == before
    run, stopped = train_or_stop(bare, None, tmp_path / "run", overrides=again, resume=True)
    assert (stopped, run.finished) == (None, True)
