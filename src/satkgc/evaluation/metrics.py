"""What is said of a set of ranks: MRR, Hits@k, mean rank, and the mean rank adjusted by that of chance."""

from __future__ import annotations

from satkgc.evaluation.ranking import Ranks

HITS = (1, 3, 10)
DIRECTIONS = ("head", "tail")


def measure(ranks: Ranks, ties: str = "realistic") -> dict[str, float]:
    """The metrics of a set of queries, by the names used in every report.

    `amr` is the mean rank over the mean rank expected of a scorer that guesses, given how many candidates each query
    has; `amri` is the same turned so that 1 is perfect, 0 is chance and below 0 is worse. No queries, no figures.
    """
    if not len(ranks):
        return {"count": 0}
    rank = ranks.rank(ties)
    mean = float(rank.mean())
    chance = float((ranks.candidates + 1).mean()) / 2
    return {
        "mrr": float((1 / rank).mean()),
        **{f"hits@{k}": float((rank <= k).mean()) for k in HITS},
        "mr": mean,
        "amr": mean / chance,
        "amri": 1 - (mean - 1) / (chance - 1) if chance > 1 else 0.0,
        "count": len(ranks),
    }


def measure_directions(ranks: dict[str, Ranks], ties: str = "realistic") -> dict[str, dict[str, float]]:
    """Metrics under "head", "tail" and "both".

    Every triple asks once in each direction, so the figures over all queries are the mean of the two directions (the
    paper's final measure, section 4.1).
    """
    both = Ranks.concatenate([ranks[direction] for direction in DIRECTIONS])
    return {name: measure(part, ties) for name, part in (*ranks.items(), ("both", both))}
