"""What literals in texts are worth: LitWD1K of LiterallyWikidata (Gesese et al., ISWC 2021), with and without them.

    git clone https://github.com/GenetAsefa/LiterallyWikidata
    python bench/literals.py LiterallyWikidata --json > literals.json
    python bench/literals.py LiterallyWikidata --rdf litwd1k.nt

The triples, labels, aliases, descriptions and literals are written as RDF and read as `satkgc kg import` reads it,
without literals and with `--literal all`; train, valid and test are as published. Numbers have units there, which are
part of the attribute's id: they are not said. With --rdf nothing is trained.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import satkgc
from satkgc.kg import Vocabulary

ENTITY, RELATION = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
RDFS, SKOS = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2004/02/skos/core#"
SPLITS = ("train", "valid", "test")
OPTIONS = {"none": None, "all": "all"}


def rows(file: Path) -> Iterator[list[str]]:
    """The cells of a file of tabs."""
    with file.open(encoding="utf-8") as lines:
        yield from (line.rstrip("\n").split("\t") for line in lines)


def quoted(text: str) -> str:
    """A literal."""
    return json.dumps(text, ensure_ascii=False)


def statements(folder: Path) -> Iterator[str]:
    """LitWD1K as N-Triples."""
    graph = folder / "Datasets" / "LitWD1K"
    entities: set[str] = set()
    relations: set[str] = set()
    for head, relation, tail in (row for split in SPLITS for row in rows(graph / f"{split}.txt")):
        entities |= {head, tail}
        relations.add(relation)
        yield f"<{ENTITY}{head}> <{RELATION}{relation}> <{ENTITY}{tail}> ."
    attributes: set[str] = set()
    for entity, attribute, value in rows(graph / "numeric_literals.txt"):
        attributes.add(attribute)
        yield f"<{ENTITY}{entity}> <{RELATION}{attribute}> {value} ."
    names = dict(row[:2] for row in rows(folder / "Datasets/Attributes/attribute_labels_en.txt"))
    for attribute in sorted(attributes):
        id, _, unit = attribute.partition("_")
        name = names.get(id, id) if unit[:1] in ("", "Q") else unit.lower().replace("longtiude", "longitude")
        yield f"<{RELATION}{attribute}> <{RDFS}label> {quoted(name)} ."
    for id, name in rows(folder / "Datasets/Relations/relation_labels_en.txt"):
        if id in relations:
            yield f"<{RELATION}{id}> <{RDFS}label> {quoted(name)} ."
    files = {"entity_labels_en": f"{RDFS}label", "entity_wikidata_descriptions_en": f"{RDFS}comment"}
    for name, predicate in {**files, "entity_aliases_en": f"{SKOS}altLabel"}.items():
        for id, text, *_ in rows(folder / "Datasets/Entities" / f"{name}.txt"):
            for part in text.split(", ") if name == "entity_aliases_en" else [text]:
                if id in entities and part:
                    yield f"<{ENTITY}{id}> <{predicate}> {quoted(part)} ."


def read(folder: Path, rdf: Path, literals: str | None) -> satkgc.KnowledgeGraph:
    """The graph as it is imported, with the published split, and without attributes as entities."""
    whole = satkgc.KnowledgeGraph.load(rdf, split="none", **({"literals": literals} if literals else {}))
    ids = {split: list(rows(folder / "Datasets" / "LitWD1K" / f"{split}.txt")) for split in SPLITS}
    used = sorted({ENTITY + id for part in ids.values() for head, _, tail in part for id in (head, tail)})
    places = [whole.entities.index(id) for id in used]
    names, descriptions = map(whole.entities.name, places), map(whole.entities.description, places)
    entities = Vocabulary.build("entity", used, list(names), list(descriptions))

    def triples(split: str) -> list[tuple[int, int, int]]:
        return [
            (entities.index(ENTITY + h), whole.relations.index(RELATION + r), entities.index(ENTITY + t))
            for h, r, t in ids[split]
        ]

    splits = {split: np.array(triples(split), np.int32) for split in SPLITS}
    return satkgc.KnowledgeGraph.from_arrays("LitWD1K", entities, whole.relations, **splits)


def measure(kg: satkgc.KnowledgeGraph, recipe: str, tokens: int, seed: int) -> dict[str, Any]:
    """One run: what it has on validation and test."""
    began = time.process_time()
    text = "model.text.max_tokens" if recipe == "frozen" else "experts.text.model.text.max_tokens"
    overrides = {text: tokens, "training.seed": seed}
    with tempfile.TemporaryDirectory() as folder:
        run = satkgc.train(kg, recipe=recipe, out=Path(folder) / "run", overrides=overrides)
        reports = {split: satkgc.evaluate(run, split) for split in ("valid", "test")}
        experts = {
            expert.name: satkgc.evaluate(expert, "valid").metrics()["both"]["mrr"]
            for expert in sorted(Path(folder).glob("run/experts/*"))
        }
    figures = {split: report.metrics()["both"] for split, report in reports.items()}
    return {"seed": seed, **figures, "valid of experts": experts, "cpu seconds": round(time.process_time() - began)}


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rdf", type=Path, help="only write the graph, as N-Triples")
    parser.add_argument("--recipe", default="frozen", help="quick, or frozen, which is its text model alone")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--literals", nargs="+", default=["none", "all"])
    parser.add_argument("--tokens", type=int, nargs="+", default=[64, 128], help="of a text; `quick` has 64")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.rdf is not None:
        options.rdf.write_text("\n".join(statements(options.folder)) + "\n", encoding="utf-8")
        return
    with tempfile.TemporaryDirectory() as folder:
        rdf = Path(folder) / "litwd1k.nt"
        rdf.write_text("\n".join(statements(options.folder)) + "\n", encoding="utf-8")
        graphs = {
            name: read(options.folder, rdf, literals) for name, literals in OPTIONS.items() if name in options.literals
        }
    report: dict[str, Any] = {"graph": "LitWD1K", "recipe": options.recipe, "version": satkgc.__version__}
    report |= {"hardware": f"CPU, {platform.machine()}", "runs": []}
    for tokens in options.tokens:
        for name, kg in graphs.items():
            for seed in options.seeds:
                run = {"literals": name, "max_tokens": tokens, **measure(kg, options.recipe, tokens, seed)}
                report["runs"].append(run)
                print(run, file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
