"""The compiled layers of a CPU against the plain ones, values and gradients."""

import numpy as np
import pytest
import torch

from graphs import graph_of
from satkgc.models import PathConfig, PathModel
from satkgc.models.paths.cpu_layers import FEATURES


def random_triples(seed, nodes, relations, count):
    return np.unique(np.random.default_rng(seed).integers(0, [nodes, relations, nodes], (count, 3)), axis=0)


def hub(leaves):
    return np.array([(0, 0, 1 + i) for i in range(leaves)])


CASES = {  # triples, entities, relations; questions, dim, layers; edges that are left out
    "small": (random_triples(0, 9, 3, 40), 9, 3, 5, 4, 3, []),
    "left out": (random_triples(1, 9, 3, 40), 9, 3, 5, 5, 3, [0, 3, 4, 20]),
    "entities without edges": (random_triples(2, 9, 2, 20), 14, 2, 3, 3, 2, []),
    "no edges": (np.empty((0, 3), int), 4, 1, 3, 3, 2, []),
    "several blocks, one of them not full": (random_triples(0, 12, 2, 50), 12, 2, FEATURES // 16 * 2 + 3, 16, 2, [7]),
    "a hub": (hub(60), 61, 1, 2, 4, 3, [1]),
    "one question": (random_triples(4, 9, 3, 40), 9, 3, 1, 8, 3, []),
}


def both(case, weighted, layers=None):
    """Scores and gradients of the compiled layers, and of the plain ones."""
    triples, entities, relations, questions, dim, default, edges = CASES[case]
    torch.manual_seed(0)
    kg = graph_of(triples, entities, relations)
    model = PathModel(kg, PathConfig(dim=dim, layers=layers or default))
    for layer in model.layers:  # not the ones and zeros that they begin with
        torch.nn.init.normal_(layer.norm.weight)
        torch.nn.init.normal_(layer.norm.bias)
    heads, asked = torch.randint(0, entities, (questions,)), torch.randint(0, 2 * relations, (questions,))
    graph = model.graph.without(torch.tensor(edges, dtype=torch.long))
    upstream = torch.randn(questions, entities)
    weights = [torch.rand(len(graph.source)) + 0.5 for _ in model.layers] if weighted and len(triples) else []
    for plain in (False, True):
        model.plain = plain
        own = [part.clone().requires_grad_() for part in weights]
        scores = model(heads, asked, graph, own or None)
        inputs = {**dict(model.named_parameters()), **{f"edges{i}": part for i, part in enumerate(own)}}
        gradients = torch.autograd.grad(scores, list(inputs.values()), upstream)
        yield {"scores": scores.detach(), **dict(zip(inputs, gradients, strict=True))}


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_equal_the_plain_layers(case):
    """Edges of different weights, so that no two messages are equal: of equal ones these choose the first alone."""
    ours, theirs = both(case, weighted=True)
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, rtol=1e-3, atol=2e-4, msg=name)


@pytest.mark.parametrize("case", CASES)
def test_without_weights_of_edges_too(case):
    ours, theirs = both(case, weighted=False)
    torch.testing.assert_close(ours["scores"], theirs["scores"], rtol=1e-3, atol=1e-4)
    ours, theirs = both(case, weighted=False, layers=1)
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, rtol=1e-3, atol=2e-4, msg=name)


def test_the_number_of_threads_changes_rounding_alone():
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            results.append(next(both("several blocks, one of them not full", weighted=False)))
    finally:
        torch.set_num_threads(before)
    for name, value in results[0].items():
        torch.testing.assert_close(value, results[1][name], rtol=1e-4, atol=1e-5, msg=name)
