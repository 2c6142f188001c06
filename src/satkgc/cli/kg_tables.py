"""What `satkgc kg` prints for people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from satkgc.cli.terminal import clean
from satkgc.kg import CATALOGUE, entry_location, shorten

MOST, LEAST = 20, 5  # relations in the table: the most frequent, and the rarest of a graph that has more
LONGEST, LONGEST_ID = 60, 32  # characters of a name, and of an id beside it

LEAKS = {
    "same": "also in {facts}",
    "symmetric": "turned round in {facts} (symmetric relation)",
    "inverse": "turned round in {facts} (inverse relation)",
}


def print_figures(figures: dict[str, Any]) -> None:
    """The figures of `kg inspect`, in groups."""
    table = Table(title=clean(figures["name"]), show_header=False, title_style="bold", box=None, padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(justify="right")
    table.add_column()
    described, entities = figures["described_entities"], figures["entities"]

    def row(what: str, value: float, note: str = "") -> None:
        table.add_row(what, f"{value:,}" if isinstance(value, int) else f"{value:,.2f}", note)

    row("entities", entities, f"{described:,} with a description ({_percent(described, entities)})")
    by_id = figures["named_by_id"]
    such_as = f", such as {', '.join(_cut(shorten(id)) for id in by_id['examples'])}" if by_id["entities"] else ""
    row("named like their id", by_id["entities"], f"{_percent(by_id['entities'], entities)}{such_as}")
    row("relations", figures["relations"])
    for split in ("train", "valid", "test", "inference")[: 4 if figures["inference"] else 3]:
        held_out = figures["held_out_entities"].get(split)
        row(f"{split} triples", figures[split], f"{held_out:,} held-out entities" if held_out else "")
    table.add_section()
    row("mean degree", figures["mean_degree"], "distinct neighbours in train")
    row("median degree", figures["median_degree"])
    row("90 % have at most", figures["p90_degree"])
    row("99 % have at most", figures["p99_degree"])
    row("highest degree", figures["max_degree"])
    row("isolated entities", figures["isolated_entities"], "not in train")
    row("components", figures["components"], f"the largest has {figures['largest_component']:,} entities")
    table.add_section()
    for name, counts in figures["relation_categories"].items():
        share = _percent(counts["train"], figures["train"])
        row(f"{name} relations", counts["relations"], f"{counts['train']:,} train triples ({share})")
    table.add_section()
    for what, key in (("words in a name", "name_words"), ("words in a description", "description_words")):
        row(what, figures[key]["mean"], f"median {figures[key]['median']:g}, at most {figures[key]['max']:,}")
    table.add_section()
    leaks, facts = figures["leaks"], "train or inference" if figures["inference"] else "train"
    for split in ("valid", "test"):
        counts = leaks[split]
        note = ", ".join(f"{counts[kind]:,} {text.format(facts=facts)}" for kind, text in LEAKS.items() if counts[kind])
        row(f"leaks into {split}", sum(counts.values()), note)
    for kind in ("symmetric", "inverse"):
        row(f"{kind} relations", len(leaks[f"{kind}_relations"]), "by their mirrors in train")
    console = Console(markup=False)  # ids may hold brackets
    console.print(table, "", _relations(figures["relation_triples"]), sep="\n")
    if figures["relation_logic"]:
        console.print("", _logic(figures["relation_logic"]), sep="\n")


def _relations(relations: list[dict[str, Any]]) -> Table:
    """The relations and their triples; of many, the most frequent and the rarest."""
    table = Table(box=None, padding=(0, 2))
    table.add_column("triples", justify="right")
    table.add_column("relation")
    table.add_column("id", style="dim")
    hidden = len(relations) - MOST - LEAST
    ids = _short_ids(relation["id"] for relation in relations)
    for place, relation in enumerate(relations):
        if hidden > 0 and place == MOST:
            table.add_row("…", f"{hidden:,} more, all of them with --json")
        if hidden <= 0 or not MOST <= place < MOST + hidden:
            table.add_row(f"{relation['triples']:,}", _cut(relation["name"]), ids[relation["id"]])
    return table


def _logic(properties: list[dict[str, Any]]) -> Table:
    """What relations mean for one another, and how that is known."""
    table = Table(box=None, padding=(0, 2))
    for column in ("relation", "property", "by"):
        table.add_column(column)
    ids = _short_ids(id for entry in properties for id in (entry["id"], *entry["others"]))
    for entry in properties[:MOST]:
        others = [*(ids[other] for other in entry["others"][:LEAST]), *["…"] * (len(entry["others"]) > LEAST)]
        table.add_row(ids[entry["id"]], " ".join([entry["property"], *others]), entry["by"])
    if len(properties) > MOST:
        table.add_row("…", f"{len(properties) - MOST:,} more, all of them with --json")
    return table


def _short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Ids that a narrow table tells apart: IRIs with their usual prefixes, else by their ends."""
    short = {id: shorten(id) for id in ids}
    ends = {id: f"…{re.split('[/#]', id.rstrip('/#'))[-1]}" for id, text in short.items() if text == id and "://" in id}
    times = Counter(ends.values())
    return {id: _cut(ends[id] if times[ends.get(id, "")] == 1 else text, LONGEST_ID) for id, text in short.items()}


def _cut(text: str, longest: int = LONGEST) -> str:
    """The end of a long text: IRIs begin alike."""
    text = clean(text)
    return text if len(text) <= longest else f"…{text[-longest:]}"


def print_catalogue() -> None:
    """The catalogue, and where each graph would come from."""
    table = Table(box=None, padding=(0, 2, 1, 0))
    table.add_column("name")
    for column in ("entities", "relations", "train"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("found", no_wrap=True)
    for entry in CATALOGUE:
        counts = (f"{count:,}" for count in (entry.counts.entities, entry.counts.relations, entry.counts.train))
        table.add_row(f"[bold]{entry.name}[/]\n[dim]{entry.about}[/]", *counts, entry_location(entry))
    Console().print(table)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"
