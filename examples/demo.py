"""Train a small model on a sample of WordNet, see what it learned, and ask it four questions.

    make demo          or: python examples/demo.py

It needs no network and no GPU. Everything it writes is in runs/demo, which is made anew each time.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import matplotlib.figure
import numpy as np
from rich.console import Console
from rich.table import Table

import satkgc
from satkgc.completion import Completer
from satkgc.evaluation import Report, evaluate
from satkgc.models import MODELS
from satkgc.training import make_config

FOLDER = Path("runs/demo")
GRAPH = "wordnet-sample"
RECIPE = "quick"
console = Console(highlight=False)


def main() -> None:
    """The whole way: a graph, an untrained model, training, a trained model, answers."""
    began = time.perf_counter()
    kg = satkgc.KnowledgeGraph.load(GRAPH)
    console.print(f"[bold]1. A graph[/]   {kg!r}")

    console.print("[bold]2. Untrained[/] how well does the language model alone guess the held-out triples?")
    config = make_config(RECIPE, benchmark=kg.benchmark).experts["text"]
    model = MODELS[config.model.kind](kg, config.model).eval()
    untrained = evaluate(model, kg, "test", config.evaluation)
    show("untrained", untrained)
    del model  # what follows needs the memory

    console.print("[bold]3. Training[/]  heads on the frozen language model, then embeddings, then how to mix the two")
    shutil.rmtree(FOLDER, ignore_errors=True)
    run = satkgc.train(kg, RECIPE, FOLDER)

    console.print("[bold]4. Trained[/]   the same held-out triples, which training never saw")
    text, fused = (satkgc.evaluate(folder, "test") for folder in (FOLDER / "experts" / "text", FOLDER))
    show("text alone", text)
    show("both", fused)
    reports = {"untrained": untrained, "text": text, "fused": fused}
    metrics = {**run.metrics, **{name: report.to_json() for name, report in reports.items()}}
    (FOLDER / "metrics.json").write_text(json.dumps(metrics, indent=1))
    draw(reports, FOLDER / "demo.png")

    console.print("[bold]5. Questions[/] three held-out triples without their tails; ✓ marks the one that was held out")
    ask_held_out(run)
    console.print("   and what is a dog?")
    ask(run.completer(), "dog.n.01", "hypernym")
    mrr = " → ".join(f"{report.metrics()['both']['mrr']:.3f}" for report in reports.values())
    console.print(f"\nMRR {mrr} ({', '.join(reports)}) in {(time.perf_counter() - began) / 60:.1f} minutes.")
    console.print(
        f"Look at {FOLDER / 'demo.png'}, {FOLDER / 'experts'} and {FOLDER / 'README.md'}. Try next:\n"
        f"  satkgc complete {FOLDER} --head happy.a.01 --relation also_see\n"
        f"  satkgc serve {FOLDER}\n"
        f"  satkgc train {GRAPH} --recipe satkgc --out runs/satkgc   # the paper: trains the language model too\n"
        "  satkgc train path/to/your/graph --out runs/mine",
        markup=False,
    )


def show(name: str, report: Report) -> None:
    """The metrics of both directions in one line."""
    both = report.metrics()["both"]
    figures = "   ".join(f"{metric} {both[metric]:.3f}" for metric in ("mrr", "hits@1", "hits@3", "hits@10"))
    console.print(f"   {name:10}   {figures}")


def ask_held_out(run: satkgc.Run) -> None:
    """Ask for the tails of three held-out triples, each of another relation."""
    completer, kg = run.completer(), run.kg
    _, firsts = np.unique(kg.test[:, 1], return_index=True)
    common = sorted(firsts, key=lambda row: -np.count_nonzero(kg.train[:, 1] == kg.test[row, 1]))[:3]
    for head, relation, tail in kg.test[common]:
        ask(completer, kg.entities.id(head), kg.relations.id(relation), kg.entities.id(tail))


def ask(completer: Completer, head: str, relation: str, held_out: str | None = None) -> None:
    """The five best tails, known ones too."""
    entities, relations = completer.kg.entities, completer.kg.relations
    entity = entities.index(head)
    name = f"{entities.name(entity)} ({entities.description(entity)}) · {relations.name(relations.index(relation))} · ?"
    table = Table(title=name, title_justify="left", title_style="italic", show_header=False, box=None)
    for answer in completer.tails(head, relation, k=5):
        mark = "✓" if answer.id == held_out else "known" if answer.known else ""
        chance = "" if answer.probability is None else f"{answer.probability:.0%}"
        table.add_row(mark, f"{answer.score:.2f}", chance, answer.name, answer.description[:70])
    console.print(table)


def draw(reports: Mapping[str, Report], file: Path) -> None:
    """Side by side."""
    names = ["mrr", "hits@1", "hits@3", "hits@10"]
    figure = matplotlib.figure.Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    for place, (label, report) in enumerate(reports.items()):
        values = [report.metrics()["both"][name] for name in names]
        bars = axes.bar(np.arange(4) + 0.28 * (place - 1), values, 0.26, label=label)
        axes.bar_label(bars, fmt="%.2f", fontsize=8)
    axes.set_xticks(range(4), names)
    axes.margins(y=0.12)
    axes.set_title("wordnet-sample, held-out triples, all entities ranked")
    axes.legend()
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
