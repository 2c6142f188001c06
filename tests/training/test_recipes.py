"""Recipes say what the paper's experiments are; settings for a benchmark, files of one's own, and what is refused."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest

from satkgc.errors import SatkgcError
from satkgc.kg import CATALOGUE, KnowledgeGraph
from satkgc.settings import build, flatten, names_of
from satkgc.training import Config, make_config, recipe_names
from satkgc.training.config import ALIASES, EXECUTION
from satkgc.training.recipe_files import FOLDER

PUBLISHED = ["satkgc", "satkgc-authors", "simkgc", "wo-saam", "wo-pcl", "wo-fmt", "wo-pcl-fmt", "rwr", "brwr-p",
             "mcmc", "mixed"]  # fmt: skip
OURS = ["simkgc-adjusted", "satkgc-adjusted", "neighbours"]
EMBEDDINGS = ["complex", "distmult", "transe", "rotate", "rotate-saam", "tucker", "compounde"]


def graphs_of(recipe):
    """The graphs that a recipe's own file has settings for."""
    return sorted(tomllib.loads((FOLDER / f"{recipe}.toml").read_text())["graph"])


GRAPHS = [name for name in graphs_of("simkgc") if name != "small"]


def parts(recipe):
    """Which of SATKGC's three parts are on."""
    config = make_config(recipe)
    loss = config.model.loss
    return config.sampling.sampler != "random", loss.proximity != "off", loss.frequency


def test_these_are_all_recipes():
    star = ["star", "star-saam", "star-ensemble"]
    assert recipe_names() == sorted([*PUBLISHED, *OURS, *EMBEDDINGS, *star, "paths", "frozen", "fused", "quick"])


def test_the_rows_of_table_1():
    assert parts("satkgc") == (True, True, True)
    assert parts("wo-saam") == (False, True, True)
    assert parts("wo-pcl-fmt") == (True, False, False)
    assert parts("wo-fmt") == (True, True, False)
    assert parts("wo-pcl") == (True, False, True)
    assert parts("simkgc") == (False, False, False)


def differences(recipe, other):
    """The settings of a recipe that are not as in another one."""
    before, after = (flatten(make_config(name).model_dump()) for name in (other, recipe))
    return {name: value for name, value in after.items() if before[name] != value and name != "recipe"}


def test_samplers_differ_from_the_full_method_in_sampling_alone():
    for name, expected in {
        "rwr": {"sampling.sampler": "rwr"},
        "brwr-p": {"sampling.sampler": "brwr_p"},
        "mcmc": {"sampling.sampler": "mcmc"},
        "mixed": {"sampling.random_share": 0.5},
    }.items():
        assert differences(name, "satkgc") == expected


def test_what_the_authors_program_has_differently_from_the_paper():
    assert differences("satkgc-authors", "satkgc") == {
        "sampling.entity_disjoint": True,
        "sampling.walk_steps": 15_000,
        "model.loss.proximity": "authors",
    }
    assert make_config("satkgc").model.loss.proximity == "paper"


def test_the_adjusted_recipes_are_the_published_ones_with_logit_adjustment():
    for name in ("simkgc", "satkgc"):
        assert differences(f"{name}-adjusted", name) == {"model.loss.logit_adjustment": 0.5}


@pytest.mark.parametrize("recipe", ["satkgc", "satkgc-authors", "simkgc"])
@pytest.mark.parametrize(
    ("graph", "triples", "batch", "rate", "steps"),
    [
        ("WN18RR", 86_835, 1024, 5e-5, 50 * (86_835 // 512)),
        ("FB15k-237", 272_115, 3072, 1e-5, 30 * (272_115 // 1536)),
        ("FB15k-237N", 87_282, 3072, 1e-5, 30 * (87_282 // 1536)),
        ("Wikidata5M-transductive", 20_614_279, 1024, 3e-5, 2 * (20_614_279 // 512)),
    ],
)
def test_the_authors_settings_for_a_graph(recipe, graph, triples, batch, rate, steps):
    config = make_config(recipe, benchmark=graph)
    assert (config.sampling.batch_size, config.training.learning_rate) == (batch, rate)
    assert config.total_steps(triples) == steps
    assert config.applied == graph
    assert config.model.loss.proximity == make_config(recipe).model.loss.proximity  # the recipe's own choices stay


@pytest.mark.parametrize("graph", [None, *GRAPHS])
@pytest.mark.parametrize("recipe", PUBLISHED)
def test_nothing_of_ours_is_laid_over_what_was_published(recipe, graph):
    config = make_config(recipe, benchmark=graph)
    assert config.applied == graph
    assert (config.model.text.exclude, config.model.loss.logit_adjustment) == ("answer", 0)
    assert (config.model.text.neighbours_per_relation, config.model.text.neighbour_dropout) == (0, 0)
    published, plain = config.model.loss, make_config(recipe).model.loss
    assert published == plain, "a published recipe has one loss, whatever the graph"


def test_logit_adjustment_is_in_every_recipe_of_ours():
    assert {make_config(name).model.loss.logit_adjustment for name in OURS} == {0.5}
    for name in OURS:
        assert make_config(name, benchmark="FB15k-237").model.loss.logit_adjustment == 1.0


@pytest.mark.parametrize("graph", GRAPHS)
def test_no_graph_s_settings_take_the_neighbours_out_of_their_recipe(graph):
    text = make_config("neighbours", benchmark=graph).model.text
    assert text.neighbours_per_relation > 0
    assert text.max_neighbours == text.neighbours_per_relation
    assert text.max_tokens > 40


@pytest.mark.parametrize("recipe", ["simkgc", "simkgc-adjusted", "neighbours"])
def test_settings_for_graphs_are_for_graphs_of_the_catalogue(recipe):
    assert set(graphs_of(recipe)) - {"small"} <= {entry.name for entry in CATALOGUE}


def test_a_recipe_s_own_settings_for_a_graph_come_over_it():
    text = make_config("neighbours").model.text
    assert (text.neighbours_per_relation, text.exclude, text.max_tokens) == (8, "edge", 100)
    text = make_config("neighbours", benchmark="FB15k-237").model.text
    assert (text.neighbours_per_relation, text.exclude, text.max_tokens) == (2, "answer", 100)


def test_settings_for_a_graph_are_laid_over_a_recipe():
    config = make_config("simkgc", benchmark="FB15k-237")
    assert (config.applied, config.sampling.sampler, config.sampling.batch_size) == ("FB15k-237", "random", 3072)
    assert make_config("simkgc-adjusted", benchmark="WN18RR").model.text.exclude == "edge"
    assert make_config("simkgc").applied is None
    assert make_config("simkgc", benchmark="OpenBG").applied is None  # one without settings


def test_every_recipe_is_whole_and_comes_back_from_json():
    for name in recipe_names():
        config = make_config(name, benchmark="Wikidata5M-inductive")
        assert build(Config, json.loads(json.dumps(config.model_dump())), aliases=ALIASES) == config


def test_what_is_set_counts_over_graph_and_recipe():
    overrides = {
        "training.learning_rate": "1e-3",
        "training.steps": "none",
        "model.encoder.chunk_tokens": "4096",
        "model.loss.frequency": "FALSE",
        "sampling.mcmc.k": "3",
        "model.encoder.backbone": "5",
        "training.epochs": 2,
    }
    config = make_config("satkgc", benchmark="WN18RR", overrides=overrides)
    assert config.training.learning_rate == 1e-3
    assert config.training.steps is None
    assert config.model.encoder.chunk_tokens == 4096
    assert config.model.loss.frequency is False
    assert config.sampling.mcmc.k == 3
    assert config.model.encoder.backbone == "5"  # text stays text
    assert config.training.epochs == 2.0


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("model.loss.margn", "1", "unknown setting model.loss.margn; did you mean model.loss.margin"),
        ("training.batch_size", "8", "did you mean sampling.batch_size"),
        ("qqqq", "1", "unknown setting qqqq; `satkgc train KG --show` lists them all"),
        ("model.loss.weight", "x", "unknown setting model.loss.weight; `satkgc train KG --show` lists them all"),
        ("training.lr", "1e-3", "did you mean training.learning_rate?"),
        ("lr", "1e-3", "did you mean training.learning_rate?"),
        ("batch_size", "8", "did you mean sampling.batch_size?"),
        ("epochs", "8", "did you mean training.epochs?"),
        ("trainig.seed", "8", "did you mean training.seed?"),
        ("evaluation.sed", "8", "did you mean evaluation.seed?"),
        ("model", "8", "did you mean model.encoder.backbone?"),
        ("objective.margin", "0.1", "did you mean model.loss.margin?"),
        ("encoder.backbone", "x", "did you mean model.encoder.backbone?"),
        ("objective.popularity", "0.5", "did you mean model.loss.logit_adjustment?"),
        ("text.hide", "edge", "did you mean model.text.exclude?"),
        ("training.chunk_tokens", "8", "did you mean model.encoder.chunk_tokens?"),
        ("training.epochs", "many", "training.epochs is 'many'; it takes a number"),
        ("training.steps", "1.5", "training.steps is '1.5'; it takes a whole number or none"),
        ("training.steps", True, "training.steps is True"),
        ("model.loss.proximity", "all", "it takes one of off, paper, authors"),
        ("model.loss.frequency", "1", "it takes true or false"),
        ("training.learning_rate", "5", "training.learning_rate is 5.0; set it to between 0 and 1"),
        ("training.clip", "nan", "training.clip"),
        ("training.seed", "-1", "training.seed is -1; set it to 0 or more"),  # what is seeded takes no others
        ("training.seed", 2**64, "training.seed is 18446744073709551616; set it to 0 or more"),
        ("evaluation.seed", "-1", "evaluation.seed is -1; set it to 0 or more"),
        ("model.kind", "magic", "model.kind is 'magic'; it takes one of embedding, frozen, fused, paths, star, text"),
        ("sampling.sampler", "magic", "sampling.sampler is 'magic'; choose one of brwr, rwr, brwr_p, mcmc, random"),
        ("sampling.batch_size", "7", "sampling.batch_size is 7; set an even number"),
    ],
)
def test_nonsense_is_refused_by_its_name(name, value, message):
    with pytest.raises(SatkgcError) as refusal:
        make_config("satkgc", overrides={name: value})
    assert message in str(refusal.value)


def test_every_alias_leads_to_a_setting_and_is_none_itself():
    known = names_of(Config)
    assert set(ALIASES.values()) <= set(known)
    assert not set(ALIASES) & {name.rsplit(".", 1)[-1] for name in known}


def test_what_a_resumed_run_may_change_are_settings():
    assert set(names_of(Config)) >= EXECUTION


def test_epochs_that_are_set_stand_before_a_recipe_s_steps():
    plain = make_config("satkgc", benchmark="wordnet-sample")
    assert plain.training.steps is not None
    two = make_config("satkgc", benchmark="wordnet-sample", overrides={"training.epochs": 2})
    assert two.total_steps(6567) == 2 * two.sampling.steps_per_epoch(6567)
    both = make_config("satkgc", benchmark="wordnet-sample", overrides={"training.epochs": 2, "training.steps": 7})
    assert both.total_steps(6567) == 7


@pytest.mark.parametrize(
    ("triples", "batch", "steps"), [(5, 10, 150), (270, 128, 150), (1819, 128, 154), (19_999, 128, 1560)]
)
def test_a_small_graph_has_a_batch_it_can_fill_and_enough_steps(triples, batch, steps):
    config = make_config("satkgc", triples=triples)
    assert (config.applied, config.sampling.batch_size, config.total_steps(triples)) == ("small", batch, steps)
    assert config.sampling.triples <= triples


def test_settings_for_small_graphs_give_way_to_all_others(tmp_path):
    assert make_config("satkgc", triples=20_000) == make_config("satkgc")
    assert make_config("satkgc", benchmark="UMLS", triples=5_216) == make_config("satkgc", benchmark="UMLS")
    assert make_config("satkgc", triples=500, overrides={"sampling.batch_size": 64}).sampling.triples == 32
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "satkgc"\n[sampling]\nbatch_size = 32\n[training]\nepochs = 2\n')
    own = make_config(mine, triples=500)
    assert (own.sampling.batch_size, own.training.epochs, own.training.learning_rate) == (32, 2.0, 2e-4)
    usual = make_config("satkgc").training.learning_rate
    large = make_config("satkgc", triples=500, overrides={"model.encoder.backbone": "some/large-one"})
    assert large.training.learning_rate == usual
    mine.write_text('extends = "satkgc"\n[model.encoder]\nbackbone = "some/large-one"\n')
    assert make_config(mine, triples=500).training.learning_rate == usual


@pytest.mark.parametrize("recipe", ["complex", "paths", "star", "quick"])
def test_re_ranking_of_a_model_without_cosines_is_refused_before_it_is_trained(recipe):
    with pytest.raises(SatkgcError, match=r"evaluation.rerank_hops adds to a cosine, which a model of kind .* has not"):
        make_config(recipe, overrides={"evaluation.rerank_hops": 2})
    assert make_config("frozen", overrides={"evaluation.rerank_hops": 2}).evaluation.rerank_hops == 2


def test_numbers_of_numpy_are_numbers():
    overrides = {
        "training.seed": np.arange(3)[1],
        "training.clip": np.float32(2),
        "model.loss.frequency": np.bool_(False),
    }
    config = make_config("satkgc", overrides=overrides)
    assert (config.training.seed, config.training.clip, config.model.loss.frequency) == (1, 2.0, False)
    json.dumps(config.model_dump())


def test_every_setting_has_a_dotted_name():
    assert set(flatten(Config().model_dump())) == set(names_of(Config))


def test_paths_of_a_graph_without_settings_may_follow_another_triple_of_the_pair_they_are_asked_for():
    for name in (None, "wordnet-sample", "WN18RR-v1", "FB15k-237-v1"):
        assert make_config("paths", benchmark=name).model.exclude == "edge", name


def joined(kg):
    """The share of held-out pairs that a training triple joins, whichever way round."""
    ends = {frozenset(pair) for pair in kg.train[:, ::2].tolist()}
    held_out = np.concatenate([kg.valid, kg.test])[:, ::2].tolist()
    return sum(frozenset(pair) in ends for pair in held_out) / len(held_out)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["FB15k-237", "FB15k-237N", "BLP-FB15k-237-inductive", "WN18RR", "UMLS"])
def test_they_never_do_where_training_joins_no_held_out_pair(name, shared_data, monkeypatch):
    monkeypatch.setenv("SATKGC_DATA", str(shared_data))
    exclude = make_config("paths", benchmark=name).model.exclude
    assert (exclude == "pair") == (joined(KnowledgeGraph.load(name)) == 0)
    if paths := make_config("fused", benchmark=name).experts.get("paths"):
        assert paths.model.exclude == exclude


@pytest.mark.parametrize("recipe", ["fused", "quick"])
def test_novelty_is_fitted_where_entities_are_held_out_alone(recipe):
    fitted = [graph for graph in [None, *GRAPHS] if make_config(recipe, benchmark=graph).model.novelty]
    assert fitted == ["BLP-FB15k-237-inductive"]
