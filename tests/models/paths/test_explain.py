"""The strongest paths against enumeration of all walks, and weights against what the score really loses."""

import itertools

import numpy as np
import pytest
import torch

from satkgc.models import PathConfig, PathModel
from satkgc.models.paths import strongest_paths
from satkgc.models.paths.explain import best_walks
from tasks import small_graph


def enumerate_walks(source, target, keep, weights, head, answer):
    """Every walk and the most it weighs, whichever layers its edges are taken in."""
    layers, walks = len(weights), {}
    edges = [e for e in range(len(source)) if keep[e]]
    for length in range(1, layers + 1):
        for walk in itertools.product(edges, repeat=length):
            joined = all(target[a] == source[b] for a, b in itertools.pairwise(walk))
            if joined and source[walk[0]] == head and target[walk[-1]] == answer:
                placed = itertools.combinations(range(layers), length)
                walks[walk] = max(sum(weights[p, e] for p, e in zip(at, walk, strict=True)) for at in placed)
    return sorted(walks.items(), key=lambda item: -item[1])


@pytest.mark.parametrize("seed", range(8))
def test_the_heaviest_walks_are_those_of_enumeration(seed):
    random = np.random.default_rng(seed)
    nodes, edges, layers, k = 4, 9, 3, 6
    source, target = random.integers(0, nodes, (2, edges)).astype(np.int32)
    keep = random.random(edges) > 0.1
    weights = random.standard_normal((layers, edges)).astype(np.float32)
    for head, answer in ((0, 1), (2, 3), (1, 1)):
        wanted = enumerate_walks(source, target, keep, weights, head, answer)[:k]
        # The walk of no steps takes a place where an entity answers itself.
        ours = best_walks(source, target, keep, weights, nodes, head, answer, k + (head == answer))
        assert [tuple(walk) for walk, _ in ours][: len(wanted)] == [walk for walk, _ in wanted][: len(ours)]
        for (_, weight), (_, expected) in zip(ours, wanted, strict=False):
            assert weight == pytest.approx(expected, abs=1e-5)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    return PathModel(small_graph(), PathConfig(dim=6, layers=3)).eval()


def test_paths_lead_from_the_question_to_the_answer_and_leave_the_triple_out(model):
    head, relation, tail = model.kg.train[0].tolist()
    size = model.kg.num_relations
    facts = {tuple(triple) for triple in model.kg.facts.tolist()}
    paths = strongest_paths(model, head, relation, tail, 5)
    assert paths
    assert [path.weight for path in paths] == sorted((path.weight for path in paths), reverse=True)
    for path in paths:
        assert path.edges[0][0] == head
        assert path.edges[-1][2] == tail
        assert len(path.edges) <= 3
        for u, r, v in path.edges:
            assert ((u, r, v) if r < size else (v, r - size, u)) in facts
            assert (u, r, v) not in {(head, relation, tail), (tail, relation + size, head)}


def test_weights_are_the_slopes_of_the_score(model):
    head, relation, tail = model.kg.train[1].tolist()
    ids = torch.tensor([head]), torch.tensor([relation])
    graph, step = model.graph, 1e-3
    ones = [torch.ones(len(graph.source), requires_grad=True) for _ in model.layers]
    gradients = torch.autograd.grad(model(*ids, graph, ones)[0, tail], ones)
    layer, edge = 1, int(gradients[1].abs().argmax())
    scores = []
    for sign in (1, -1):
        moved = [weights.detach().clone() for weights in ones]
        moved[layer][edge] += sign * step
        scores.append(model(*ids, graph, moved)[0, tail].item())
    assert gradients[layer][edge].item() == pytest.approx((scores[0] - scores[1]) / (2 * step), rel=0.05, abs=1e-4)


def test_weights_of_one_change_nothing(model):
    ids = torch.tensor([0, 1]), torch.tensor([0, 2])
    ones = [torch.ones(len(model.graph.source)) for _ in model.layers]
    torch.testing.assert_close(model(*ids, model.graph, ones), model(*ids, model.graph), rtol=1e-4, atol=1e-5)
