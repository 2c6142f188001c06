"""The Python that the docs show, run as a reader would, with a tiny language model in place of the default one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import satkgc
from satkgc.completion import Completer
from satkgc.evaluation import evaluate
from satkgc.kg import Vocabulary
from satkgc.models import EncoderConfig, Questions, TextModel, TextModelConfig
from satkgc.sampling import SamplingConfig, make_sampler
from satkgc.training import Config, RunFolder

ROOT = Path(__file__).parents[2]


def snippets(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="session")
def sample() -> satkgc.KnowledgeGraph:
    """What the sample of WordNet has around the entities that the docs ask about: a hundred entities encode quickly."""
    kg = satkgc.KnowledgeGraph.load("wordnet-sample")
    chosen = [kg.entities.index(f"{name}.01") for name in ("happy.a", "dog.n", "animal.n", "cold.a", "hot.a")]
    for _ in range(3):
        chosen = np.unique(kg.train[np.isin(kg.train[:, [0, 2]], chosen).any(1)][:, [0, 2]])

    def within(triples):
        rows = triples[np.isin(triples[:, [0, 2]], chosen).all(1)]
        return np.stack([np.searchsorted(chosen, rows[:, 0]), rows[:, 1], np.searchsorted(chosen, rows[:, 2])], 1)

    words = (kg.entities.ids, kg.entities.names, kg.entities.descriptions)
    entities = Vocabulary.build("entity", *(column.take(chosen) for column in words))
    splits = (within(kg.split(split)) for split in ("train", "valid", "test"))
    return satkgc.KnowledgeGraph.from_arrays("sample", entities, kg.relations, *splits)


@pytest.fixture(scope="session")
def demo(tmp_path_factory, tiny_backbone, sample) -> Path:
    """A prepared run on it, its model never trained."""
    folder, kg = tmp_path_factory.mktemp("docs") / "demo", sample
    config = Config(model=TextModelConfig(encoder=EncoderConfig(backbone=str(tiny_backbone))))
    RunFolder.create(folder, config, kg, "wordnet-sample")
    TextModel(kg, config.model).save(folder / "model")
    Completer.load(folder)
    return folder


@pytest.fixture
def reader(tmp_path, monkeypatch, demo, tiny_backbone, sample):
    """Runs a snippet in a folder that has runs/demo; training takes three steps of the tiny model."""
    monkeypatch.chdir(tmp_path)
    load = satkgc.KnowledgeGraph.load

    def load_sample(source, **options):
        return sample if source == "wordnet-sample" else load(source, **options)

    monkeypatch.setattr(satkgc.KnowledgeGraph, "load", load_sample)
    shutil.copytree(demo, tmp_path / "runs" / "demo")
    train = satkgc.train
    short = {"training.steps": 3, "model.encoder.backbone": str(tiny_backbone), "training.device": "cpu"}

    def train_briefly(kg, *arguments, overrides=None, **options):
        quick = not arguments and not options.keys() & {"recipe", "config", "sampler", "loss"}
        tokens = {"experts.text.model.text.max_tokens" if quick else "model.text.max_tokens": 50}
        return train(kg, *arguments, overrides={**(overrides or {}), **short, **tokens}, **options)

    monkeypatch.setattr(satkgc, "train", train_briefly, raising=False)
    names: dict[str, object] = {}

    def run(snippet: str) -> dict[str, object]:
        tiny = f"EncoderConfig(backbone={str(tiny_backbone)!r})"
        snippet = re.sub(r"EncoderConfig\([^)]*\)", tiny, snippet)
        snippet = snippet.replace("batch_size=1024", "batch_size=64").replace("batch_size=128", "batch_size=64")
        snippet = snippet.replace("TextModelConfig()", f"TextModelConfig(encoder=satkgc.models.{tiny})")
        exec(snippet.replace("{answer.probability:4.0%}", "{answer.probability}"), names)  # untrained: it has none
        return names

    return run


def test_readme(reader, capsys):
    reader(snippets("README.md")[0])
    printed = capsys.readouterr().out
    assert "Hits@10" in printed
    assert len(printed.splitlines()) > 10


def test_training(reader, capsys):
    first, typed, sampler, loss, own, callback = snippets("docs/training.md")
    assert reader(first)["run"].finished
    assert reader(typed)["run"].config.sampling.sampler == "random"
    reader(sampler)
    reader(loss)
    run = reader(own)["run"]
    assert run.about["sampler"].endswith("ByRelation")
    assert "nearest" in run.log()[-2]["metrics"]
    reader(callback.replace("step % 10", "step % 2"))
    assert re.search(r"^2 -?0\.\d{3}$", capsys.readouterr().out, re.MULTILINE)


def test_functions_for_a_language_model(reader, capsys):
    (example,) = snippets("docs/language-models.md")
    names = reader(example)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith('{"asked": "tail", "answers": [{"id": "')
    assert second.startswith("error: unknown entity 'dogg'; did you mean 'dog' (dog.n.01)")
    assert {function["function"]["name"] for function in names["functions"]} >= {"search", "complete", "check"}
    torn = {"tool_calls": [{"id": "3", "function": {"name": "complete", "arguments": '{"head": '}}]}
    assert next(names["answer_calls"](torn))["content"].startswith("error: ")


def test_a_model_of_ones_own(reader, sample):
    names, kg = reader(snippets("docs/architecture.md")[0]), sample
    model = names["DistMult"](kg, names["DistMultConfig"]())
    loss, metrics = model.loss(make_sampler(kg, SamplingConfig(batch_size=64), 0).draw(0))
    loss.backward()
    assert metrics.keys() == {"accuracy"}
    questions = Questions(np.array([3, 5], np.int32), np.array([0, kg.num_relations], np.int32))
    assert (model.score(questions, np.array([[1, 2], [7, 0]]))[1] == model.score(questions)[1, [7, 0]]).all()
    assert evaluate(model, kg).metrics()["both"]["count"] == 2 * len(kg.test)


@pytest.mark.parametrize("page", ["text.md", "encoders.md", "completion.md", "sampling.md"])
def test_pages(reader, page, capsys):
    blocks = snippets(f"docs/{page}")
    assert blocks
    for block in blocks:
        names = reader(block)
    printed = capsys.readouterr().out
    if page == "encoders.md":
        assert float(printed.splitlines()[-1]) < 1e-5
    if page == "completion.md":
        assert (names["accepted"], names["total"]) == (10, names["count"])
        assert names["facts"]["entities"] == names["kg"].num_entities


def test_evaluation_of_a_run(reader):
    names = reader(snippets("docs/evaluation.md")[2])
    assert names["report"].config.sampled == 1000
