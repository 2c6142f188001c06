"""Settings refuse what cannot work, and say what to change."""

from __future__ import annotations

import pytest

from satkgc.errors import SatkgcError
from satkgc.sampling import McmcConfig, SamplingConfig


@pytest.mark.parametrize(
    ("setting", "value", "remedy"),
    [
        ("sampler", "brw", "choose one of brwr, rwr, brwr_p, mcmc, random"),
        ("sampler", 3, "it takes text"),
        ("batch_size", 1023, "set an even number: every triple comes with its inverse"),
        ("batch_size", 0, "set an even number: every triple comes with its inverse"),
        ("batch_size", 10.5, "it takes a whole number"),
        ("subgraph_triples", 0, "set it to 1 or more"),
        ("walk_steps", -1, r"set it below 2\*\*32, or to 0"),
        ("walk_steps", 2**32, r"set it below 2\*\*32, or to 0"),
        ("restart", 1.0, "set it to 0 or more and less than 1"),
        ("restart", -0.1, "set it to 0 or more and less than 1"),
        ("random_share", 1.5, "set it to 0 or more and at most 1"),
        ("pick", "most-visited", "it takes one of random, least-visited"),
        ("epoch_rule", "mine", "it takes one of paper, authors"),
        ("entity_disjoint", "yes", "it takes true or false"),
    ],
)
def test_a_setting_out_of_range_is_named(setting, value, remedy):
    with pytest.raises(SatkgcError, match=f"^sampling.{setting} is {value!r}; {remedy}$"):
        SamplingConfig(**{setting: value})


@pytest.mark.parametrize(
    ("setting", "value", "remedy"),
    [
        ("path", 0, "set it to 1 or more"),
        ("k", 0, "set it to 1 or more"),
        ("alpha", 1.0, "set it to more than 0 and less than 1"),
        ("burn_in", -1, "set it to 0 or more"),
        ("refresh", 0, "set it to 1 or more"),
    ],
)
def test_so_is_one_of_mcmc(setting, value, remedy):
    message = f"^sampling.mcmc.{setting} is {value!r}; {remedy}$"
    with pytest.raises(SatkgcError, match=message):
        McmcConfig(**{setting: value})
    with pytest.raises(SatkgcError, match=message):
        SamplingConfig(mcmc={setting: value})


def test_what_is_gone_is_unknown():
    with pytest.raises(SatkgcError, match=r"unknown setting sampling\.distances"):
        SamplingConfig(distances="graph")


def test_steps_of_an_epoch_by_the_paper_and_by_the_authors():
    # WN18RR: 86,835 triples, batches of 512 triples and their inverses.
    assert SamplingConfig().steps_per_epoch(86_835) == 86_835 // 1024
    assert SamplingConfig(epoch_rule="authors").steps_per_epoch(86_835) == 86_835 // 512
    assert SamplingConfig().steps_per_epoch(600) == 1
