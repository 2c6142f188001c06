"""The false triples that a model ranks above the true one: what Figures 1 and 2 of the paper count."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from satkgc.arrays import Float32, Int32
from satkgc.evaluation.exact import ranking_device, to_grid
from satkgc.evaluation.questions import Questions

_ROWS = 32


def false_positives(
    questions: Questions, queries: Float32, entities: Float32, device: torch.device | str = "cpu"
) -> Iterator[tuple[int, Int32]]:
    """The asked entity of each question, and the entities that score higher than its answer and are no answer.

    `queries` (Q, d) and `entities` (E, d) are vectors.
    """
    device = ranking_device(device)
    grid = to_grid(entities, device)  # (E, d)
    for start in range(0, len(questions.entities), _ROWS):
        rows = slice(start, min(start + _ROWS, len(questions.entities)))
        scores = to_grid(queries[rows], device) @ grid.T  # (q, E)
        answers = torch.from_numpy(questions.answers[rows]).to(device).long()
        above = scores > scores.gather(1, answers[:, None])
        known_rows, known_columns = questions.known.tile(rows, slice(0, len(entities)))
        above[torch.from_numpy(known_rows).to(device), torch.from_numpy(known_columns).to(device)] = False
        for place, found in enumerate(above.cpu().numpy(), start=start):
            yield int(questions.entities[place]), found.nonzero()[0].astype("int32")
