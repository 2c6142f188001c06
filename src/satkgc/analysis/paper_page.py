"""`docs/paper.md`: each table and figure of the paper in its order, its numbers beside ours, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean

from satkgc.analysis import paper_analyses as found
from satkgc.analysis.experiments import table_rows
from satkgc.analysis.markdown import paper_figures, table_head, table_line
from satkgc.analysis.paper_analyses import Analyses
from satkgc.analysis.paper_claims import OURS, Results, claims, systems_table
from satkgc.kg import find_entry

BOTH = ("WN18RR", "FB15k-237")
WIKIDATA = ("Wikidata5M-transductive", "Wikidata5M-inductive")
SATKGC = ("w/o SaaM", "w/o PCL, FMT", "w/o FMT", "w/o PCL", "SATKGC")
TABLE_2 = (
    *("TuckER", "RotatE", "KGTuner", "KG-Mixup", "UniGE", "CompoundE", "KRACL", "CSProm-KG"),
    *("StAR", "HaSa", "KG-S2S", "SimKGC", "GHN", *SATKGC),
)
TABLE_12 = ("SANS", "TransE", "DistMult", "KG-BERT", "MTL-KGC", "StAR (Self-Adp)")
TABLE_3 = (
    *("TransE", "TuckER", "RotatE", "KGTuner", "DKRL", "KEPLER", "BLP-ComplEx", "BLP-SimplE", "SimKGC", "SATKGC"),
)
# Systems without a row of ours, and why.
WHY = {
    "KGTuner": "a search for the settings of embedding models: none is run here",
    "KG-Mixup": "synthetic triples for entities of low degree: not built here",
    "UniGE": "embeddings in two geometries: not built here",
    "KRACL": "a graph network with contrastive loss: not built here; the nearest is `paths`",
    "CSProm-KG": "embeddings by prompts to a frozen language model: not built here",
    "HaSa": "SimKGC with negatives chosen by neighbourhood: not built here",
    "KG-S2S": "a language model that generates the answer: not built here",
    "GHN": "SimKGC with generated negatives: not built here",
    "SANS": "RotatE with negatives by structure: not built here; the nearest is RotatE + SaaM",
    "KG-BERT": "a cross-encoder, hours for one evaluation: not built here",
    "MTL-KGC": "a cross-encoder with three tasks: not built here",
    "KoPA": "a language model of seven billion weights with an adapter: not built here",
    "DKRL": "a convolution over words: not built here",
    "KEPLER": "language modelling and TransE in one: not built here",
    "BLP-ComplEx": "ComplEx over text vectors: not built here",
    "BLP-SimplE": "SimplE over text vectors: not built here",
    "ReSKGC": "a language model that reads retrieved triples and generates: not built here, no public program",
    "TransE": "`satkgc train Wikidata5M-transductive --recipe transe --out runs/transe`",
    "TuckER": "`satkgc train Wikidata5M-transductive --recipe tucker --out runs/tucker`",
    "RotatE": "`satkgc train Wikidata5M-transductive --recipe rotate --out runs/rotate`",
}
INTRODUCTION = """# The paper and ours

Every table and figure of the paper (WWW '25, doi 10.1145/3696410.3714946) in its order, and what came of it here. Made
by `make results` from the files in `results/` and `results/analyses/`; no figure of ours is typed by hand. A cell reads
"ours / the paper's": filtered ranks on test, the mean of both directions. A system that we did not train has the
paper's figure and says why, or which command makes the row. Settings that are not the published ones are in the label;
[results](results.md) has every run with its commit.

A claim that one system is better is put to every setting in which we have both: the difference of MRR, and ± what seeds
explain, which is half the distance between the best and the worst of either system, or 0.005 where there is one seed.
"level" is a difference within that. Short runs of the small backbone are named as such by their steps.

What could not be had: Wikidata5M's data, and the weights of BERT and DeBERTa. Their rows are commands."""


def paper_page(results: Results, analyses: Analyses) -> str:
    """The text of docs/paper.md."""
    parts = [INTRODUCTION, *(f"## {title}\n\n{_text(lines)}" for title, lines in _parts(results, analyses))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _text(lines: Iterator[str]) -> str:
    return "\n".join(lines).strip()


def _parts(results: Results, analyses: Analyses) -> Iterator[tuple[str, Iterator[str]]]:
    """Title and lines of each table and figure."""
    both = "satkgc simkgc"
    figure = found.judge_false_positives
    yield (
        "Figure 1. False positives by distance",
        found.section("false-positives-by-distance", analyses, figure, both),
    )
    yield (
        "Figure 2. False positives by degree",
        found.section("false-positives-by-degree", analyses, figure, both),
    )
    yield (
        "Figures 3 and 4. Drawings of the method",
        iter(["Nothing to measure; ours is in the [README](../README.md)."]),
    )
    yield (
        "Figure 5. Entity frequencies of graph and batches",
        found.section("entity-frequencies", analyses, found.judge_frequencies, "satkgc"),
    )
    yield "Table 1. Graphs", _graphs()
    ahead = (("SATKGC is ahead of SimKGC", "SATKGC", "SimKGC"),)
    yield "Table 2. Main results", _ranks(TABLE_2, BOTH, ahead, results)
    yield "Table 3. Wikidata5M", _ranks(TABLE_3, WIKIDATA, ahead, results)
    yield "Table 4. FB15k-237N among 1,000 entities", _ranks(("KoPA", "SATKGC"), ("FB15k-237N",), (), results)
    yield (
        "Section 5.3. What each part adds",
        claims(
            (
                ("Subgraph batches (SaaM) help", "SATKGC", "w/o SaaM"),
                ("Subgraph batches alone help", "w/o PCL, FMT", "SimKGC"),
                ("The proximity term (PCL) helps", "SATKGC", "w/o PCL"),
                ("Frequency weights (FMT) help", "SATKGC", "w/o FMT"),
                ("Frequency weights give more than the proximity term", "w/o PCL", "w/o FMT"),
            ),
            BOTH,
            results,
        ),
    )
    encoders = ("MPNet", "BERT-base", "DeBERTa-base", "BERT-large", "DeBERTa-large")
    yield "Table 5. Encoders", _ranks(encoders, BOTH, (("MPNet is ahead of BERT-base", "MPNet", "BERT-base"),), results)
    samplers = tuple((f"BRWR is ahead of {other}", "BRWR", other) for other in ("RWR", "BRWR_P", "MCMC"))
    yield "Table 6. How subgraphs are drawn", _ranks(("RWR", "BRWR", "BRWR_P", "MCMC"), BOTH, samplers, results)
    yield (
        "Figure 6. Occurrences of triples and entities",
        found.section("occurrences", analyses, found.judge_occurrences, "satkgc"),
    )
    yield (
        "Section 5.5. The most and the least visited",
        found.section("most-and-least-visited", analyses, found.judge_extremes, "satkgc"),
    )
    yield (
        "Figure 7. Cosines of in-batch negatives by epoch",
        found.section("negative-cosines", analyses, found.judge_cosines, both),
    )
    yield (
        "Section 5.6. Answers won and lost",
        found.section("won-and-lost", analyses, found.judge_won_and_lost, "simkgc satkgc"),
    )
    yield "Figure 8. Drawing of the input", iter(["Nothing to measure; [texts](text.md) says what an encoder reads."])
    yield "Table 7. Batch size", _batches(results)
    yield "Figure 9. Restart probability and duplicates", _restart(results, analyses)
    saam = tuple((f"{name} gains by SaaM", f"{name} + SaaM", name) for name in ("RotatE", "StAR"))
    yield (
        "Table 8. SaaM with other models",
        _ranks(("RotatE", "RotatE + SaaM", "StAR", "StAR + SaaM"), BOTH, saam, results),
    )
    yield (
        "Table 9. Half of the batch at random",
        _ranks(("Mixed", "SaaM"), BOTH, (("A whole subgraph is better than a half", "SaaM", "Mixed"),), results),
    )
    yield "Figure 10. Relation categories", _categories(results)
    yield "Table 10. Time", _times(results, analyses)
    yield (
        "Table 11. Distance and similarity",
        found.section("distance-similarity", analyses, found.judge_similarity, "satkgc"),
    )
    yield "Table 12. All systems", _ranks(TABLE_12, BOTH, (), results, "The rest of Table 2's systems, and these:")
    yield "Table 13. Loss on false positives", found.section("false-positive-loss", analyses, found.judge_loss, both)
    yield "Table 14. ReSKGC", _ranks(("ReSKGC", "SATKGC"), WIKIDATA[:1], (), results)


def _ranks(
    systems: tuple[str, ...],
    datasets: tuple[str, ...],
    pairs: tuple[tuple[str, str, str], ...],
    results: Results,
    before: str = "",
) -> Iterator[str]:
    """A table of systems for each dataset, and what is claimed of them."""
    if before:
        yield from (before, "")
    if pairs:
        yield from (*claims(pairs, datasets, results), "")
    for dataset in datasets:
        yield from (*systems_table(dataset, systems, WHY, results), "")


def _graphs() -> Iterator[str]:
    """Table 1 against the catalogue, which checks a graph that it loads by these counts."""
    yield "**Holds** for the graphs at hand. The paper repeats valid's count for the test triples of"
    yield "Wikidata5M-transductive, and counts the entities of train alone for the inductive graph."
    yield ""
    yield from table_head(("ours / the paper's", "entities", "relations", "train", "valid", "test"))
    for name, theirs in paper_figures()["Table 1"].items():
        counts = find_entry(name).counts
        ours = counts.entities, counts.relations, counts.train, counts.valid, counts.test
        cells = (f"{a:,}" if a == b else f"{a:,} / {b:,.0f}" for a, b in zip(ours, theirs, strict=True))
        yield table_line((name, *cells))


def _batches(results: Results) -> Iterator[str]:
    best = {"WN18RR": "batch 1024", "FB15k-237": "batch 3072"}
    for dataset, size in best.items():
        sizes = tuple(name for name in paper_figures()[dataset] if name.startswith("batch "))
        pairs = tuple((f"{size} is ahead of {other}", size, other) for other in sizes if other != size)
        yield from (*claims(pairs, (dataset,), results), "", *systems_table(dataset, sizes, WHY, results), "")


def _restart(results: Results, analyses: Analyses) -> Iterator[str]:
    """The paper shows curves without numbers: Hits@1 falls as the restart probability and the duplicates grow."""
    for dataset in BOTH:
        rows = [row for row in table_rows() if (row.group, row.dataset) == ("restart", dataset) and row.name in results]
        hits: dict[str, list[float]] = {}
        for row in rows:
            hits.setdefault(row.label, []).append(results[row.name].both["hits@1"])
        data = analyses.get(("restart", dataset))
        duplicates = next(iter(data["charts"]["Duplicate entities in a batch"].values())) if data else {}
        if len(hits) < 2:
            yield from (f"{dataset}: not measured yet.", "")
            continue
        means = {label: mean(values) for label, values in hits.items()}
        first, *_, last = means.values()
        verdict = "holds" if first > last + 0.005 else "does not hold" if first < last - 0.005 else "level"
        setting = f"{dataset}, {results[rows[0].name].steps:,} steps of {rows[0].backbone}"
        yield f"{setting}: Hits@1 falls from rare restarts to frequent ones: {verdict}."
        yield ""
        yield from table_head(("restart", "Hits@1", "duplicate entities in a batch"))
        for label, value in means.items():
            yield table_line((label, f"{value:.3f}", f"{duplicates[label]:.0f}" if label in duplicates else ""))
        yield ""


def _categories(results: Results) -> Iterator[str]:
    """Test triples by category, and Hits@1 of our runs of SATKGC and SimKGC."""
    yield "The paper draws shares and Hits@1 without numbers: N-N relations are more frequent on FB15k-237 than on"
    yield "WN18RR, and N-1 relations rarer. Ours, of the test triples:"
    for dataset in BOTH:
        runs = {}
        for row in table_rows():
            known = (row.dataset, row.group) == (dataset, "main") and row.recipe not in OURS and row.paper
            if known and row.name in results and not row.name.endswith("seed1"):
                runs[row.label] = results[row.name].breakdown.get("category", {})
        if not runs:
            continue
        counts = {name: part["both"]["count"] for name, part in next(iter(runs.values())).items()}
        total = sum(counts.values())
        yield from ("", *table_head((dataset, "share of the test triples", *(f"Hits@1, {label}" for label in runs))))
        for name, count in counts.items():
            hits = (f"{run[name]['both']['hits@1']:.3f}" if name in run else "" for run in runs.values())
            yield table_line((name, f"{count / total:.1%}", *hits))


def _times(results: Results, analyses: Analyses) -> Iterator[str]:
    """Minutes an epoch, beside the paper's six A6000."""
    yield "**Holds** that subgraphs cost little. There is no preprocessing here: batches are drawn while the model"
    yield "computes."
    yield ""
    yield from table_head(("minutes an epoch", "hardware", "ours", "the paper's, six A6000"), 2)
    for place, dataset in enumerate(BOTH):
        for system, minutes in paper_figures()["Table 10, minutes an epoch"].items():
            rows = [r for r in table_rows() if (r.dataset, r.paper, r.label) == (dataset, system, system)]
            done = [results[row.name] for row in rows if row.name in results and row.group in ("main", "star")][:1]
            hardware, ours = (done[0].hardware, f"{done[0].minutes / done[0].epochs:.2f}") if done else ("", "")
            yield table_line((f"{dataset}, {system}", hardware, ours, f"{minutes[place]:.0f}"))
        data = analyses.get(("times", dataset))
        drawn = next(iter(data["charts"]["Minutes of an epoch"].values())) if data else {}
        for name, part in (("BRWR", "drawing batches"), ("Shortest Path + Degree", "distances in them")):
            ours = f"{drawn[part]:.2f}" if part in drawn else ""
            theirs = paper_figures()["Table 10, minutes of preprocessing"][name][place]
            yield table_line((f"{dataset}, {part}; the paper: {name}, once", "one core", ours, f"{theirs:.0f}"))
