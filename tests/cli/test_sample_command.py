"""`satkgc sample`, run as a user would."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from graphs import random_graph
from satkgc.cli import app
from satkgc.errors import SatkgcError


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph") / "kg"
    random_graph(3).save(folder)
    return str(folder)


def run(*arguments):
    return CliRunner().invoke(app, ["sample", *arguments], catch_exceptions=False)


def test_the_table_has_a_column_for_each_sampler(graph):
    result = run(graph, "--batch-size", "20", "--steps", "4", "--sampler", "rwr", "--sampler", "random")
    assert result.exit_code == 0
    assert "rwr" in result.stdout
    assert "random" in result.stdout
    assert "Gini" in result.stdout
    assert "hops: 0" in result.stdout


def test_json_is_all_that_is_printed_and_the_seed_decides(graph):
    first, second, other = (
        json.loads(run(graph, "--batch-size", "20", "--json", "--seed", seed).stdout) for seed in ("1", "1", "2")
    )
    assert first["samplers"]["brwr"]["steps"] == len(random_graph(3).train) // 20  # one epoch
    for result in (first, second, other):
        assert result["samplers"]["brwr"].pop("batches_per_second") > 0
    assert first == second
    assert first["samplers"]["brwr"]["settings"]["batch_size"] == 20
    assert first["samplers"] != other["samplers"]


def test_the_picture_is_where_it_was_asked_for(graph, tmp_path):
    compared = ["--sampler", "brwr", "--sampler", "random"]
    assert run(graph, "--batch-size", "20", "--steps", "2", "--plot", str(tmp_path / "p.png"), *compared).exit_code == 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sampler", "walk"], "choose one of brwr"),
        (["--sampler", "mcmc", "--batch-size", "20"], "needs the vectors of a model"),
        (["--batch-size", "1024"], "set sampling.batch_size to"),
        (["--plot", "/dev/null/at/all.png"], "cannot make this folder"),
        (["--plot", "all.foo"], "does not end in .png"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(graph, arguments, message):
    with pytest.raises(SatkgcError, match=message) as caught:
        run(graph, *arguments)
    assert "\n" not in str(caught.value)
