"""The strongest paths against enumeration of all, and weights against what the score really loses."""

import itertools

import numpy as np
import pytest
import torch

from satkgc.models import PathConfig, PathModel
from satkgc.models.paths import strongest_paths
from satkgc.models.paths.explain import best_paths
from tasks import small_graph


def enumerate_paths(source, target, keep, weights, head, answer):
    """Every path and the most it weighs, whichever layers its edges are taken in."""
    layers, paths = len(weights), {}
    edges = [e for e in range(len(source)) if keep[e]]
    for length in range(1, layers + 1):
        for path in itertools.product(edges, repeat=length):
            joined = all(target[a] == source[b] for a, b in itertools.pairwise(path))
            once = len({head, *(target[e] for e in path)}) == length + 1
            if joined and once and source[path[0]] == head and target[path[-1]] == answer:
                placed = itertools.combinations(range(layers), length)
                paths[path] = max(sum(weights[p, e] for p, e in zip(at, path, strict=True)) for at in placed)
    return sorted(paths.items(), key=lambda item: -item[1])


@pytest.mark.parametrize("seed", range(8))
def test_the_heaviest_paths_are_those_of_enumeration(seed):
    random = np.random.default_rng(seed)
    nodes, edges, layers, k = 4, 14, 3, 30  # enough for all there are
    source, target = random.integers(0, nodes, (2, edges)).astype(np.int32)
    keep = random.random(edges) > 0.1
    weights = random.standard_normal((layers, edges)).astype(np.float32)
    total = 0
    for head, answer in ((0, 1), (2, 3), (1, 1)):
        wanted = enumerate_paths(source, target, keep, weights, head, answer)
        ours = best_paths(source, target, keep, weights, nodes, head, answer, k)
        assert [tuple(path) for path, _ in ours] == [path for path, _ in wanted]
        for (_, weight), (_, expected) in zip(ours, wanted, strict=True):
            assert weight == pytest.approx(expected, abs=1e-5)
        total += len(ours)
    assert total


def test_a_dense_graph_has_paths_though_the_heaviest_walks_go_in_circles():
    nodes, layers = 8, 6
    source, target = np.array([(u, v) for u in range(nodes) for v in range(nodes) if u != v], np.int32).T
    weights = np.where((source < 2) & (target < 2), 5.0, 1.0) * np.ones((layers, 1))
    keep = np.ones(len(source), bool)
    ours = best_paths(source, target, keep, weights.astype(np.float32), nodes, 0, 7, 6)
    assert len(ours) == 6
    for path, weight in ours:
        assert len({0, *target[path]}) == len(path) + 1
        assert weight == 10  # 0 → 1, and five more


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


def test_a_neighbourhood_is_explained_from_its_own_facts(model):
    near = PathModel(model.kg, PathConfig(dim=6, layers=3, neighbourhood=12)).eval()
    near.load_state_dict(model.state_dict())
    explained = 0
    for head, relation, tail in model.kg.train[:8].tolist():
        nodes, _ = near.graph_near(head)
        paths = strongest_paths(near, head, relation, tail, 3)
        for path in paths:
            assert (path.edges[0][0], path.edges[-1][2]) == (head, tail)
            assert {end for u, _, v in path.edges for end in (u, v)} <= set(nodes.tolist())
        explained += len(paths)
        far = np.setdiff1d(np.arange(model.kg.num_entities), nodes)
        assert strongest_paths(near, head, relation, int(far[0]), 3) == []
    assert explained
