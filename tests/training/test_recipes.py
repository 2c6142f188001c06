"""Recipes say what the paper's experiments are; settings are typed, and nonsense is refused by its name."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from satkgc.errors import SatkgcError
from satkgc.training import Config, make_config, recipe_names
from satkgc.training.recipes import FOLDER
from satkgc.training.settings import USUAL, build, flat, merge, names_of


def parts(recipe):
    """Which of SATKGC's three parts are on."""
    config = make_config(recipe)
    return config.sampling.sampler != "random", config.objective.proximity != "off", config.objective.frequency


def test_the_rows_of_table_1():
    assert parts("satkgc") == (True, True, True)
    assert parts("wo-saam") == (False, True, True)
    assert parts("wo-pcl-fmt") == (True, False, False)
    assert parts("wo-fmt") == (True, True, False)
    assert parts("wo-pcl") == (True, False, True)
    assert parts("simkgc") == (False, False, False)


def test_samplers_differ_from_the_full_method_in_sampling_alone():
    full = flat(asdict(make_config("satkgc")))
    for name, expected in {
        "rwr": {"sampling.sampler": "rwr"},
        "brwr-p": {"sampling.sampler": "brwr_p"},
        "mcmc": {"sampling.sampler": "mcmc"},
        "mixed": {"sampling.random_share": 0.5},
    }.items():
        other = flat(asdict(make_config(name)))
        assert {k: v for k, v in other.items() if full[k] != v and k != "recipe"} == expected


@pytest.mark.parametrize(
    ("graph", "triples", "batch", "rate", "steps"),
    [
        ("WN18RR", 86_835, 1024, 5e-5, 50 * (86_835 // 512)),
        ("FB15k-237", 272_115, 3072, 1e-5, 30 * (272_115 // 1536)),
        ("FB15k-237N", 87_282, 3072, 1e-5, 30 * (87_282 // 1536)),
        ("Wikidata5M-transductive", 20_614_279, 1024, 3e-5, 2 * (20_614_279 // 512)),
    ],
)
def test_the_authors_settings_for_a_graph(graph, triples, batch, rate, steps):
    config = make_config("satkgc-authors", graph=graph)
    assert (config.sampling.batch_size, config.training.learning_rate) == (batch, rate)
    assert config.total_steps(triples) == steps
    assert config.applied == graph
    assert config.objective.proximity == "negatives"  # the recipe's own choices stay


@pytest.mark.parametrize("graph", sorted(file.stem for file in (FOLDER / "graphs").glob("*.toml")))
def test_nothing_of_ours_is_laid_over_the_authors_recipe(graph):
    config = make_config("satkgc-authors", graph=graph)
    assert (config.applied, config.text.hide, config.objective.popularity) == (graph, "answer", 0)


def test_what_is_ours_is_in_every_recipe_but_the_authors():
    popularity = {name: make_config(name).objective.popularity for name in recipe_names()}
    assert popularity.pop("satkgc-authors") == 0
    assert set(popularity.values()) == {0.5}


@pytest.mark.parametrize("graph", sorted(file.stem for file in (FOLDER / "graphs").glob("*.toml")))
def test_no_graph_s_settings_take_the_neighbours_out_of_their_recipe(graph):
    text = make_config("neighbours", graph=graph).text
    assert text.neighbour_relations
    assert text.neighbours > 0
    assert text.max_tokens > 40


def test_a_file_that_extends_a_recipe_has_its_settings_for_a_graph(tmp_path):
    for name, base in (("one", "neighbours"), ("two", "one.toml"), ("three", "satkgc-authors"), ("four", "wo-pcl")):
        (tmp_path / f"{name}.toml").write_text(f'extends = "{base}"\n')
    assert make_config(str(tmp_path / "two.toml"), graph="wordnet-sample").text.neighbours == 8
    assert make_config(str(tmp_path / "one.toml"), graph="FB15k-237").text.hide == "answer"
    assert make_config(str(tmp_path / "three.toml"), graph="WN18RR").text.hide == "answer"
    assert make_config(str(tmp_path / "four.toml"), graph="WN18RR").text.hide == "edge"


def test_a_recipe_s_own_settings_for_a_graph_come_over_it():
    text = make_config("neighbours").text
    assert (text.neighbour_relations, text.hide, text.max_tokens) == (True, "edge", 100)
    text = make_config("neighbours", graph="FB15k-237").text
    assert (text.neighbour_relations, text.hide, text.neighbours) == (True, "answer", 2)


def test_settings_for_a_graph_are_laid_over_a_recipe():
    config = make_config("simkgc", graph="FB15k-237")
    assert (config.applied, config.sampling.sampler, config.sampling.batch_size) == ("FB15k-237", "random", 3072)
    assert make_config("simkgc", graph="WN18RR").text.hide == "edge"
    assert make_config("simkgc").applied == "none"
    assert make_config("simkgc", graph="my-own").applied == "none"


def test_every_recipe_is_whole_and_comes_back_from_json():
    assert {"satkgc", "simkgc", "satkgc-authors"} <= set(recipe_names())
    for name in recipe_names():
        config = make_config(name, graph="Wikidata5M-inductive")
        assert build(Config, json.loads(json.dumps(asdict(config)))) == config


def test_what_is_set_counts_over_graph_and_recipe():
    overrides = {
        "training.learning_rate": "1e-3",
        "training.steps": "none",
        "training.chunk_tokens": "4096",
        "objective.frequency": "FALSE",
        "sampling.mcmc.k": "3",
        "encoder.backbone": "5",
        "training.epochs": 2,
    }
    config = make_config("satkgc", graph="WN18RR", overrides=overrides)
    assert config.training.learning_rate == 1e-3
    assert config.training.steps is None
    assert config.training.chunk_tokens == 4096
    assert config.objective.frequency is False
    assert config.sampling.mcmc.k == 3
    assert config.encoder.backbone == "5"  # text stays text
    assert config.training.epochs == 2.0


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("objective.margn", "1", "unknown setting objective.margn; did you mean objective.margin"),
        ("training.batch_size", "8", "did you mean sampling.batch_size"),
        ("qqqq", "1", "unknown setting qqqq; `satkgc train KG --show` lists them all"),
        ("objective.loss", "x", "unknown setting objective.loss; `satkgc train KG --show` lists them all"),
        ("training.lr", "1e-3", "did you mean training.learning_rate?"),
        ("lr", "1e-3", "did you mean training.learning_rate?"),
        ("batch_size", "8", "did you mean sampling.batch_size?"),
        ("epochs", "8", "did you mean training.epochs?"),
        ("trainig.seed", "8", "did you mean training.seed?"),
        ("evaluation.sed", "8", "did you mean evaluation.seed?"),
        ("model", "8", "did you mean encoder.backbone?"),
        ("training.epochs", "many", "training.epochs is 'many'; it takes a number"),
        ("training.steps", "1.5", "training.steps is '1.5'; it takes a whole number or none"),
        ("training.steps", True, "training.steps is True"),
        ("objective.mask", "all", "it takes one of known, answer, none"),
        ("objective.frequency", "1", "it takes true or false"),
        ("training.learning_rate", "5", "training.learning_rate is 5.0; set it to between 0 and 1"),
        ("training.clip", "nan", "training.clip"),
        ("sampling.distances", "none", "objective.proximity is 'all', and sampling.distances is 'none'"),
        ("objective.proximity_rule", "exact", "set both to exact and pairs"),
        ("sampling.batch_size", "7", "sampling.batch_size"),
    ],
)
def test_nonsense_is_refused_by_its_name(name, value, message):
    with pytest.raises(SatkgcError) as refusal:
        make_config("satkgc", overrides={name: value})
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("[training]\nlr = 1e-3", "did you mean training.learning_rate?"),
        ("[training]\nbatch_size = 8", "did you mean sampling.batch_size?"),
        ("[sampling.mcmc]\nburnin = 8", "did you mean sampling.mcmc.burn_in?"),
        ("seed = 8", "did you mean training.seed?"),
        ("[trainin]\nseed = 8", "did you mean training?"),
        ("[objective]\nloss = 8", "--show` lists them all"),
    ],
)
def test_a_file_is_told_what_it_may_have_meant(tmp_path, text, meant):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(SatkgcError, match=r"mine\.toml: unknown setting") as refusal:
        make_config(tmp_path / "mine.toml")
    assert meant in str(refusal.value)


def test_every_usual_name_leads_to_a_setting_and_is_none_itself():
    known = names_of(Config)
    assert set(USUAL.values()) <= set(known)
    assert not set(USUAL) & {name.rsplit(".", 1)[-1] for name in known}


def test_no_distances_are_computed_that_nobody_reads():
    assert make_config("wo-pcl").sampling.distances == "none"
    assert make_config("satkgc").sampling.distances == "graph"


def test_a_recipe_of_ones_own(tmp_path):
    (tmp_path / "base.toml").write_text('extends = "satkgc"\n[training]\nepochs = 3\n')
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "base"\n[objective]\nmargin = 0.1\n')
    config = make_config(str(mine))
    assert (config.training.epochs, config.objective.margin, config.sampling.sampler) == (3.0, 0.1, "brwr")
    for text, message in [
        ("[objective]\nmargin = ", "not a TOML file"),
        ("[objective]\nmargn = 1", "unknown setting objective.margn"),
        ('extends = "mine"', "extends itself"),
        ('extends = "nobody"', "unknown recipe 'nobody'"),
        ("objective = 3", "objective is 3; it takes a table of settings"),
    ]:
        mine.write_text(text)
        with pytest.raises(SatkgcError, match=message):
            make_config(str(mine))


def test_a_file_is_never_taken_for_the_package_s_recipe_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "simkgc.toml").write_text('extends = "simkgc"\n[objective]\nmargin = 0.33\n')
    for given in ("simkgc.toml", "./simkgc.toml", tmp_path / "simkgc.toml"):
        config = make_config(given)
        assert (config.objective.margin, config.sampling.sampler) == (0.33, "random"), given
    assert make_config("simkgc").objective.margin == 0.02
    with pytest.raises(SatkgcError, match=r"unknown recipe 'satkgc.toml'"):
        make_config("satkgc.toml")  # there is none here


def test_epochs_that_are_set_stand_before_a_recipe_s_steps():
    plain = make_config("satkgc", graph="wordnet-sample")
    assert plain.training.steps is not None
    two = make_config("satkgc", graph="wordnet-sample", overrides={"training.epochs": 2})
    assert two.total_steps(6567) == 2 * two.sampling.steps_per_epoch(6567)
    both = make_config("satkgc", graph="wordnet-sample", overrides={"training.epochs": 2, "training.steps": 7})
    assert both.total_steps(6567) == 7


@pytest.mark.parametrize(
    ("triples", "batch", "steps"), [(5, 10, 150), (270, 128, 150), (1819, 128, 154), (19_999, 128, 1560)]
)
def test_a_small_graph_has_a_batch_it_can_fill_and_enough_steps(triples, batch, steps):
    config = make_config("satkgc", graph="mine", triples=triples)
    assert (config.applied, config.sampling.batch_size, config.total_steps(triples)) == ("small", batch, steps)
    assert config.sampling.triples <= triples


def test_settings_for_small_graphs_give_way_to_all_others(tmp_path):
    assert make_config("satkgc", graph="mine", triples=20_000) == make_config("satkgc")
    assert make_config("satkgc", graph="UMLS", triples=5_216) == make_config("satkgc", graph="UMLS")
    assert (
        make_config("satkgc", graph="mine", triples=500, overrides={"sampling.batch_size": 64}).sampling.triples == 32
    )
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "satkgc"\n[sampling]\nbatch_size = 32\n[training]\nepochs = 2\n')
    own = make_config(mine, graph="mine", triples=500)
    assert (own.sampling.batch_size, own.training.epochs, own.training.learning_rate) == (32, 2.0, 2e-4)
    large = make_config("satkgc", graph="mine", triples=500, overrides={"encoder.backbone": "some/large-one"})
    assert large.training.learning_rate == make_config("satkgc").training.learning_rate


def test_a_file_of_ones_own_stands_over_the_settings_for_a_graph(tmp_path):
    (tmp_path / "base.toml").write_text('extends = "satkgc"\n[objective]\npopularity = 1.0\n')
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "base"\n[sampling]\nbatch_size = 256\n[training]\nepochs = 1\n')
    wn18rr = make_config(mine, graph="WN18RR")
    assert (wn18rr.sampling.batch_size, wn18rr.objective.popularity, wn18rr.training.epochs) == (256, 1.0, 1.0)
    assert (wn18rr.text.hide, wn18rr.applied) == ("edge", "WN18RR")  # what it does not say is the graph's
    set_to = make_config(mine, graph="WN18RR", overrides={"sampling.batch_size": 64})
    assert (set_to.sampling.batch_size, set_to.training.epochs) == (64, 1.0)


def test_epochs_in_a_file_of_ones_own_stand_before_the_steps_below(tmp_path):
    (tmp_path / "steps.toml").write_text('extends = "satkgc"\n[training]\nsteps = 9\n')
    (tmp_path / "epochs.toml").write_text('extends = "steps"\n[training]\nepochs = 1\n')
    assert make_config(tmp_path / "steps.toml", graph="wordnet-sample").training.steps == 9
    for graph in ("wordnet-sample", "mine", None):
        config = make_config(tmp_path / "epochs.toml", graph=graph, triples=6567)
        assert (config.training.steps, config.training.epochs) == (None, 1.0), graph


def test_an_unknown_recipe_names_the_nearest():
    with pytest.raises(SatkgcError, match="did you mean satkgc"):
        make_config("satkg")


def test_trees():
    assert merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 5}, "d": {"e": 1}}) == {
        "a": {"b": 5, "c": 2},
        "d": {"e": 1},
    }
    assert flat({"a": {"b": {"c": 1}}, "d": 2}) == {"a.b.c": 1, "d": 2}
    assert set(flat(asdict(Config()))) == set(names_of(Config))


def test_numbers_of_numpy_are_numbers():
    overrides = {
        "training.seed": np.arange(3)[1],
        "training.clip": np.float32(2),
        "objective.frequency": np.bool_(False),
    }
    config = make_config("satkgc", overrides=overrides)
    assert (config.training.seed, config.training.clip, config.objective.frequency) == (1, 2.0, False)
    json.dumps(asdict(config))
