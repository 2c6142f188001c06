"""A chart as JSON, as a table, as a picture."""

from __future__ import annotations

import numpy as np
import pytest
from rich.console import Console

from satkgc.analysis import Chart, draw_charts
from satkgc.analysis.chart import align

BARS = align("Share", "distance", {"short": {"1": 0.5, "2": 0.25}, "long": {"1": 1.0, "2": 2.0, "3": 3.0}})


def test_series_of_different_lengths_share_their_groups():
    assert BARS.groups == ["1", "2", "3"]
    assert BARS.to_json() == {"short": {"1": 0.5, "2": 0.25}, "long": {"1": 1.0, "2": 2.0, "3": 3.0}}
    assert np.isnan(BARS.series["short"][2])


def test_a_table_has_a_row_a_group_and_nothing_where_there_is_none():
    console = Console(width=80)
    with console.capture() as capture:
        console.print(BARS.table())
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in capture.get().splitlines()]
    assert [line for line in lines if line] == [["1", "0.5", "1"], ["2", "0.25", "2"], ["3", "", "3"]]


@pytest.mark.parametrize("kind", ["bars", "line", "log-log"])
def test_every_kind_is_drawn(kind, tmp_path):
    chart = Chart("Share", "distance", BARS.groups, BARS.series, kind)
    draw_charts([chart, BARS], tmp_path / "charts.png")
    assert (tmp_path / "charts.png").read_bytes().startswith(b"\x89PNG")
