"""Settings refuse what cannot work, and say what to change."""

from __future__ import annotations

import pytest

from satkgc.errors import SatkgcError
from satkgc.sampling import McmcConfig, SamplingConfig


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("sampler", "brw"),
        ("batch_size", 1023),
        ("batch_size", 0),
        ("subgraph_triples", 0),
        ("walk_steps", -1),
        ("walk_steps", 2**32),
        ("restart", 1.0),
        ("restart", -0.1),
        ("random_share", 1.5),
        ("epoch_rule", "mine"),
        ("distances", "some"),
    ],
)
def test_a_setting_out_of_range_is_named(setting, value):
    with pytest.raises(SatkgcError, match=f"sampling.{setting} = .*out of range; "):
        SamplingConfig(**{setting: value})


@pytest.mark.parametrize(("setting", "value"), [("path", 0), ("k", 0), ("alpha", 1.0), ("burn_in", -1), ("refresh", 0)])
def test_so_is_one_of_mcmc(setting, value):
    with pytest.raises(SatkgcError, match=f"sampling.mcmc.{setting} = "):
        McmcConfig(**{setting: value})


def test_steps_of_an_epoch_by_the_paper_and_by_the_authors():
    # WN18RR: 86,835 triples, batches of 512 triples and their inverses.
    assert SamplingConfig().steps_per_epoch(86_835) == 86_835 // 1024
    assert SamplingConfig(epoch_rule="authors").steps_per_epoch(86_835) == 86_835 // 512
    assert SamplingConfig().steps_per_epoch(600) == 1
