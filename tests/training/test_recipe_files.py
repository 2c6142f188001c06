"""Recipes of the user's own: files that extend others, with settings for graphs, and what is refused of them."""

from __future__ import annotations

import pytest

from satkgc.errors import SatkgcError
from satkgc.training import make_config


def test_a_file_that_extends_a_recipe_has_its_settings_for_a_graph(tmp_path):
    bases = {"one": "neighbours", "two": "one.toml", "three": "satkgc-authors", "four": "satkgc-adjusted"}
    for name, base in bases.items():
        (tmp_path / f"{name}.toml").write_text(f'extends = "{base}"\n')

    def text(name, graph):
        return make_config(str(tmp_path / f"{name}.toml"), benchmark=graph).model.text

    assert text("two", "wordnet-sample").neighbours_per_relation == 8
    assert text("one", "FB15k-237").exclude == "answer"
    assert text("three", "WN18RR").exclude == "answer"
    assert text("four", "WN18RR").exclude == "edge"


def test_a_file_of_ones_own_may_have_settings_for_a_graph(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'extends = "simkgc"\n[graph."WN18RR".training]\nepochs = 7\n[graph.tiny.sampling]\nbatch_size = 4\n'
    )
    config = make_config(mine, benchmark="WN18RR")
    assert (config.training.epochs, config.sampling.batch_size) == (7.0, 1024)  # the rest is the package's
    assert make_config(mine).training.epochs == make_config("simkgc").training.epochs
    assert make_config(mine, benchmark="tiny").sampling.batch_size == 4
    mine.write_text('extends = "simkgc"\n[graph."WN18RR".training]\nepoch = 7\n')
    with pytest.raises(SatkgcError, match=r"mine\.toml: unknown setting training\.epoch; did you mean training\.ep"):
        make_config(mine)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("[training]\nlr = 1e-3", "did you mean training.learning_rate?"),
        ("[training]\nbatch_size = 8", "did you mean sampling.batch_size?"),
        ("[sampling.mcmc]\nburnin = 8", "did you mean sampling.mcmc.burn_in?"),
        ("seed = 8", "did you mean training.seed?"),
        ("[trainin]\nseed = 8", "did you mean training.seed?"),
        ("[model.loss]\nweight = 8", "--show` lists them all"),
    ],
)
def test_a_file_is_told_what_it_may_have_meant(tmp_path, text, meant):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(SatkgcError, match=r"mine\.toml: unknown setting") as refusal:
        make_config(tmp_path / "mine.toml")
    assert meant in str(refusal.value)


def test_a_recipe_of_ones_own(tmp_path):
    (tmp_path / "base.toml").write_text('extends = "satkgc"\n[training]\nepochs = 3\n')
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "base"\n[model.loss]\nmargin = 0.1\n')
    config = make_config(str(mine))
    assert (config.training.epochs, config.model.loss.margin, config.sampling.sampler) == (3.0, 0.1, "brwr")
    for text, message in [
        ("[model.loss]\nmargin = ", "not a TOML file"),
        ("[model.loss]\nmargn = 1", "unknown setting model.loss.margn"),
        ('extends = "mine"', "extends itself"),
        ('extends = "nobody"', "unknown recipe 'nobody'"),
        ("extends = 3", r"mine\.toml: 3 is no recipe"),
        ("sampling = 3", "sampling is 3; it takes a table of settings"),
        ("[model]\nloss = 3", "model.loss is 3; it takes a table of settings"),
    ]:
        mine.write_text(text)
        with pytest.raises(SatkgcError, match=message):
            make_config(str(mine))


def test_a_file_is_never_taken_for_the_package_s_recipe_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "simkgc.toml").write_text('extends = "simkgc"\n[model.loss]\nmargin = 0.33\n')
    for name in ("simkgc.toml", "./simkgc.toml", tmp_path / "simkgc.toml"):
        config = make_config(name)
        assert (config.model.loss.margin, config.sampling.sampler) == (0.33, "random"), name
    assert make_config("simkgc").model.loss.margin == 0.02
    with pytest.raises(SatkgcError, match=r"unknown recipe 'satkgc.toml'"):
        make_config("satkgc.toml")  # there is none here


def test_a_file_of_ones_own_stands_over_the_settings_for_a_graph(tmp_path):
    (tmp_path / "base.toml").write_text('extends = "satkgc-adjusted"\n[model.loss]\nlogit_adjustment = 1.0\n')
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "base"\n[sampling]\nbatch_size = 256\n[training]\nepochs = 1\n')
    wn18rr = make_config(mine, benchmark="WN18RR")
    loss, text = wn18rr.model.loss, wn18rr.model.text
    assert (wn18rr.sampling.batch_size, loss.logit_adjustment, wn18rr.training.epochs) == (256, 1.0, 1.0)
    assert (text.exclude, wn18rr.applied) == ("edge", "WN18RR")  # what it does not say is the graph's
    set_to = make_config(mine, benchmark="WN18RR", overrides={"sampling.batch_size": 64})
    assert (set_to.sampling.batch_size, set_to.training.epochs) == (64, 1.0)


def test_what_a_file_of_ones_own_says_for_a_graph_stands_over_what_it_says_for_all(tmp_path):
    base, mine = tmp_path / "base.toml", tmp_path / "mine.toml"
    base.write_text(
        'extends = "complex"\n[sampling]\nbatch_size = 500\n[training]\nepochs = 7\nclip = 2\n'
        '[graph."WN18RR".training]\nsteps = 30\n[graph.small.sampling]\nbatch_size = 400\n'
    )
    wn18rr, small = make_config(base, benchmark="WN18RR"), make_config(base, triples=50)
    assert (wn18rr.total_steps(86_835), wn18rr.training.clip, wn18rr.sampling.batch_size) == (30, 2.0, 500)
    assert small.sampling.batch_size == 100  # what the graph can fill
    assert make_config(base).total_epochs(500) == 7
    mine.write_text('extends = "base"\n[training]\nepochs = 9\n[graph."UMLS".training]\nclip = 3\n')
    assert make_config(mine, benchmark="WN18RR").training.epochs == 9  # the nearer file's word
    assert make_config(mine, benchmark="WN18RR").training.steps is None
    assert make_config(mine, benchmark="UMLS").training.clip == 3


def test_epochs_in_a_file_of_ones_own_stand_before_the_steps_below(tmp_path):
    (tmp_path / "steps.toml").write_text('extends = "satkgc"\n[training]\nsteps = 9\n')
    (tmp_path / "epochs.toml").write_text('extends = "steps"\n[training]\nepochs = 1\n')
    assert make_config(tmp_path / "steps.toml", benchmark="wordnet-sample").training.steps == 9
    for benchmark, triples in (("wordnet-sample", 6567), (None, 6567), (None, None)):
        config = make_config(tmp_path / "epochs.toml", benchmark=benchmark, triples=triples)
        assert (config.training.steps, config.training.epochs) == (None, 1.0), benchmark


def test_an_unknown_recipe_names_the_nearest():
    with pytest.raises(SatkgcError, match="did you mean satkgc"):
        make_config("satkg")
