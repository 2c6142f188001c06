"""The tables: from no files, from some, the same every time, and only between the markers."""

from __future__ import annotations

import subprocess
import sys

import pytest
from made_up import metrics, result

from satkgc.analysis import save_result
from satkgc.analysis.markdown import NOT_YET
from satkgc.analysis.results import Evaluation
from satkgc.analysis.tables import END, START, make_tables, readme_block, replace_block, results_page
from satkgc.errors import SatkgcError


def line_with(text, *parts):
    """The one line that has all the parts."""
    (line,) = [line for line in text.splitlines() if all(part in line for part in parts)]
    return line


def test_without_results_every_row_says_so_and_shows_the_paper_s():
    page = results_page({})
    assert f"{NOT_YET} |  |  | – / 0.694 | – / 0.626 | – / 0.743 | – / 0.833 |" in line_with(
        page, "WN18RR", "| SATKGC |", "all-mpnet-base-v2", NOT_YET
    )
    assert f"WN18RR, minilm: {NOT_YET}." in page


def test_our_figure_stands_beside_the_paper_s():
    results = {"wn18rr-satkgc": result("wn18rr-satkgc", 0.7)}
    for text in (results_page(results), readme_block(results)):
        line = line_with(text, "WN18RR", "| SATKGC |", "all entities")
        assert "| 10 | 3, NVIDIA H200 | 0.700 / 0.694 | 0.650 / 0.626 |" in line
    assert NOT_YET in results_page(results)
    assert NOT_YET not in readme_block(results)
    provenance = line_with(results_page(results), "`wn18rr-satkgc`")
    for part in ("1,690", "3.2", "NVIDIA H200", "`0123456789`", "0.700"):
        assert part in provenance


def test_sampled_candidates_are_what_the_paper_s_sample_is_compared_with():
    parts = {"split": "test", "ties": "realistic", "head": metrics(0.6), "tail": metrics(0.6), "both": metrics(0.6)}
    sampled = Evaluation(candidates="1,000 sampled of all entities", **parts)
    page = results_page({"fb15k-237n-satkgc-adjusted": result("fb15k-237n-satkgc-adjusted", 0.4, also=[sampled])})
    assert "| 0.600 / 0.569 |" in line_with(page, "FB15k-237N", "1,000 sampled")
    assert "| 0.400 | 0.350 |" in line_with(page, "FB15k-237N", "| all entities")


def test_seeds_are_averaged_and_their_spread_is_shown():
    results = {
        name: result(name, mrr)
        for name, mrr in (("wn18rr-edge-ablation-wo-fmt", 0.50), ("wn18rr-edge-ablation-wo-fmt-seed1", 0.52))
    }
    page = results_page(results)
    line = line_with(page, "| w/o FMT")
    assert "| 0.510 ± 0.010 / 0.680 |" in line
    assert line.endswith("| 2 |")
    assert line_with(page, "| w/o PCL |").endswith(f"| {NOT_YET} |")
    assert "WN18RR, all-mpnet-base-v2, 1,690 steps, `model.text.exclude = edge`:" in page  # a setting of ours is named
    assert "wo-fmt, `model.text.exclude = edge`" in line_with(page, "`wn18rr-edge-ablation-wo-fmt-seed1`")


def test_seeds_of_a_method_that_stands_alone_are_averaged_too():
    results = {name: result(name, mrr) for name, mrr in (("wn18rr-satkgc", 0.69), ("wn18rr-satkgc-seed1", 0.70))}
    line = line_with(readme_block(results), "WN18RR", "| SATKGC |")
    assert "| 10 | 3, NVIDIA H200 | 0.695 ± 0.005 / 0.694 |" in line


def test_a_row_shared_by_tables_is_shown_in_each():
    page = results_page({"wn18rr-edge-ablation-satkgc-minilm": result("wn18rr-edge-ablation-satkgc-minilm", 0.61)})
    for label in ("| SATKGC | 0.610", "| BRWR | 0.610", "| SaaM | 0.610", "| 1024 | 0.610", "| 1/25 | 0.610"):
        assert line_with(page, label)


def test_only_what_is_between_the_markers_is_replaced():
    page = f"before\n{START}\nold\n{END}\nafter {END}\n"
    once = replace_block(page, "new")
    assert once == f"before\n{START}\nnew\n{END}\nafter {END}\n"
    assert replace_block(once, "new") == once
    with pytest.raises(SatkgcError, match="no place for the results"):
        replace_block("a page", "new")


def test_making_the_tables_twice_changes_nothing(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(f"# x\n{START}\n{END}\n")
    save_result(result("fb15k-237-satkgc-adjusted", 0.38), tmp_path / "results")
    pages = []
    command = [sys.executable, "-m", "satkgc.analysis.tables", "--root", tmp_path]
    for make in (lambda: subprocess.run(command, check=True), lambda: make_tables(tmp_path)):
        make()
        pages.append([(tmp_path / name).read_bytes() for name in ("README.md", "docs/results.md", "docs/paper.md")])
    assert pages[0] == pages[1]
    assert b"0.380 / 0.370" in pages[0][0]
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == [
        "README.md",
        "fb15k-237-satkgc-adjusted.json",
        "paper.md",
        "results.md",
    ]
