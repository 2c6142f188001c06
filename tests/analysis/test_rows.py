"""The rows: they name recipes, settings and graphs that exist, and no experiment twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from satkgc.analysis.rows import MPNET, find_row, load_groups, load_rows, table_rows
from satkgc.analysis.tables import paper_figures
from satkgc.errors import SatkgcError
from satkgc.kg import find_entry
from satkgc.training.recipes import make_config


def test_every_row_is_a_valid_configuration_of_a_known_graph_and_no_two_are_the_same():
    seen: dict[tuple[str, str], str] = {}
    for row in load_rows().values():
        assert find_entry(row.dataset).name == row.dataset
        overrides = {**row.overrides, "training.seed": row.seed, "encoder.backbone": row.backbone}
        config = replace(make_config(row.recipe, graph=row.dataset, overrides=overrides), recipe="")
        assert (row.dataset, repr(config)) not in seen, f"{row.name} is {seen[row.dataset, repr(config)]} again"
        seen[row.dataset, repr(config)] = row.name


def test_tables_and_paper_figures_that_rows_name_exist():
    for row in table_rows():
        assert row.group in load_groups()
        assert row.paper is None or row.paper in paper_figures()[row.dataset]


def test_families_unfold_into_backbones_and_seeds():
    assert find_row("wn18rr-ablation-wo-pcl").backbone == MPNET
    other = find_row("wn18rr-ablation-wo-pcl-minilm-seed1")
    assert (other.backbone, other.seed, other.recipe) == ("minilm", 1, "wo-pcl")
    shared = find_row("wn18rr-ablation-wo-pcl").overrides
    assert shared["training.epochs"] == 5  # the length of all comparisons on this graph
    assert other.overrides == {**shared, "training.learning_rate": 3e-4}  # MiniLM's own rate
    assert find_row("wn18rr-batch-512-minilm").overrides == {
        **shared,
        "training.learning_rate": 3e-4,
        "sampling.batch_size": 512,
    }
    assert "wn18rr-batch-512" not in load_rows()  # a family names its backbones


def test_a_row_may_stand_in_several_tables_under_other_labels():
    shown = [row for row in table_rows() if row.name == "wn18rr-ablation-satkgc-minilm"]
    assert {"ablation": "SATKGC", "samplers": "BRWR", "batch": "1024"}.items() <= {
        r.group: r.label for r in shown
    }.items()
    assert find_row("wn18rr-ablation-satkgc-minilm").label == "SATKGC"


def test_a_row_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(SatkgcError, match="did you mean wn18rr-satkgc"):
        find_row("wn18r-satkgc")
