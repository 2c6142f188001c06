"""Which questions runs answer: those won and lost between two systems (Section 5.6), and Hits@1 by relation category
(Figure 10)."""

from __future__ import annotations

import numpy as np

from satkgc.analysis.chart import Chart, align
from satkgc.analysis.options import Options, Runs
from satkgc.arrays import Float64
from satkgc.errors import SatkgcError
from satkgc.evaluation import QuestionRanks
from satkgc.kg import CATEGORIES, KnowledgeGraph, relation_categories
from satkgc.training import RunFolder

TOP = 10


def chart_won_and_lost(runs: Runs, options: Options) -> list[Chart]:
    """Section 5.6: what another run loses of the first one's top-10 answers, and what it wins of the rest."""
    if len(runs) < 2:
        raise SatkgcError("one run has nothing to win or lose", remedy="give two runs, the one to compare with first")
    (base, first), *others = ((label, read_ranks(run, options)) for label, run in runs.items())
    shares = {}
    for label, other in others:
        first.refuse_unlike(other)
        shares[f"{label} against {base}"] = won_and_lost(*(ranks.table["rank"].to_numpy() for ranks in (first, other)))
    return [align(f"Answers that enter and leave the top {TOP}", "questions", shares)]


def won_and_lost(first: Float64, second: Float64, top: int = TOP) -> dict[str, float]:
    """Shares of the first's hits that the second misses, and of its misses that the second hits."""
    hit, hits = first <= top, second <= top
    lost = float((~hits[hit]).mean()) if hit.any() else np.nan
    won = float(hits[~hit].mean()) if (~hit).any() else np.nan
    return {"lost, of those in the top 10": lost, "won, of the others": won}


def chart_categories(runs: Runs, options: Options) -> list[Chart]:
    """Figure 10: how many training triples have a relation of each category, and Hits@1 of those of the split."""
    shares = {label: category_shares(run.kg) for label, run in runs.items()}
    hits = {label: hits_by_category(run.kg, read_ranks(run, options)) for label, run in runs.items()}
    return [align("Share of the training triples", "relation", shares), align("Hits@1", "relation", hits)]


def category_shares(kg: KnowledgeGraph) -> dict[str, float]:
    """Of the training triples by the category of their relation."""
    counts = np.bincount(relation_categories(kg)[kg.train[:, 1]], minlength=len(CATEGORIES))
    return {name: float(counts[place] / max(1, len(kg.train))) for place, name in enumerate(CATEGORIES)}


def hits_by_category(kg: KnowledgeGraph, ranks: QuestionRanks) -> dict[str, float]:
    """Hits@1 over both directions, by the category of the relation."""
    category = dict(zip(kg.relations.ids.to_pylist(), relation_categories(kg).tolist(), strict=True))
    of_question = np.array([category[relation] for relation in ranks.table["relation"].to_pylist()])
    hit = ranks.table["rank"].to_numpy() <= 1
    groups = {name: of_question == place for place, name in enumerate(CATEGORIES)}
    return {name: float(hit[group].mean()) for name, group in groups.items() if group.any()}


def read_ranks(run: RunFolder, options: Options) -> QuestionRanks:
    """Those that `satkgc reproduce` left in the run folder, or else by evaluating it now."""
    file = run.folder / f"ranks-{options.split}.parquet"
    if file.exists():
        return QuestionRanks.read(file)
    return QuestionRanks.read(run.evaluate(options.split, device=options.device, progress=options.progress))
