"""The page on sampling says what the committed counts say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["wn18rr-disjoint", "wn18rr-paper", "fb15k-237-disjoint", "fb15k-237-paper"])
def test_the_table_of_skews_is_that_of_the_results(name):
    counted = json.loads((ROOT / "results" / "sampling" / f"{name}.json").read_text())
    page = (ROOT / "docs" / "sampling.md").read_text().splitlines()
    for sampler, figures in counted["samplers"].items():
        entities, triples = figures["entity_visits"], figures["triple_visits"]
        settings = figures["settings"]
        batch = f"{'disjoint' if settings['entity_disjoint'] else 'any'}, M = {settings['subgraph_triples']:,}"
        cells = [counted["graph"], "any" if sampler == "random" else batch, sampler]  # these are rules for subgraphs
        cells += [f"{visits[key]:.3f}" for visits in (entities, triples) for key in ("variation", "gini")]
        assert f"| {' | '.join(cells)} |" in page
