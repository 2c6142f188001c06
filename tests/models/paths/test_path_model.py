"""What the path model is: a chain that it can follow, edges it must not see, graphs and entities it never saw."""

import numpy as np
import pytest
import torch

from graphs import graph_of
from satkgc.models import Fact, NewEntityText, PathConfig, PathModel, Questions, StepContext
from satkgc.models.paths.graph import MessageGraph, find_edges
from satkgc.sampling import SamplingConfig, make_sampler


def grandparents(families, start=0):
    """Lines of three: (a, 0, b), (b, 0, c), (a, 1, c)."""
    return np.array([(s + a, r, s + b) for s in range(start, start + 3 * families, 3) for a, r, b in FAMILY])


FAMILY = (0, 0, 1), (1, 0, 2), (0, 1, 2)


@pytest.fixture(scope="module")
def trained():
    """A model that has learnt on thirty families that 1 is 0 after 0; ten more, of which the last fact is missing."""
    known, asked = grandparents(30), grandparents(10, 90)
    inference, test = asked[asked[:, 1] == 0], asked[asked[:, 1] == 1]
    kg = graph_of(known, 120, 2, inference=inference, test=test)
    torch.manual_seed(0)
    model = PathModel(kg, PathConfig(dim=16, layers=3))
    sampler = make_sampler(kg, SamplingConfig(sampler="random", batch_size=32), 0, model.needs)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(80):
        model.backward(model.collate(sampler.draw(step)), StepContext())
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


def test_a_rule_of_two_steps_holds_on_a_graph_it_never_saw(trained):
    test = trained.kg.test
    scores = trained.score(Questions(test[:, 0], test[:, 1]))
    assert (scores.argmax(1).numpy() == test[:, 2]).mean() >= 0.9


def test_a_new_entity_is_understood_by_its_facts(trained):
    size, (_, _, middle) = trained.kg.num_entities, trained.kg.inference[0].tolist()
    child = trained.kg.inference[1, 2]
    new = NewEntityText("new", facts=(Fact(0, middle, "middle"),))
    questions = Questions(np.array([size], np.int32), np.array([1], np.int32), [new])
    assert trained.knows_questions(questions).tolist() == [True]
    scores = trained.score(questions)
    assert scores.shape == (1, size)
    assert scores.argmax() == child
    both = trained.score(questions, np.array([[child, size]], np.int32))
    assert both[0, 0] == scores[0, child]
    nobody = Questions(questions.entities, questions.relations, [NewEntityText("nobody")])
    assert trained.knows_questions(nobody).tolist() == [False]


def test_an_answer_does_not_depend_on_what_is_asked_beside_it(trained):
    """Least of all on what somebody else says of an entity of his own."""
    size, middle = trained.kg.num_entities, trained.kg.inference[0, 2]
    one, other = (NewEntityText(name, facts=(Fact(0, middle, "middle"),)) for name in ("one", "other"))
    entities, relations = np.array([size, 90, size + 1], np.int32), np.array([1, 1, 0], np.int32)
    together = trained.score(Questions(entities, relations, [one, other]))
    plain = trained.score(Questions(entities[1:2], relations[1:2]))
    torch.testing.assert_close(together[1:2], plain)
    for row, new in ((0, one), (2, other)):
        alone = trained.score(Questions(np.array([size], np.int32), relations[[row]], [new]))
        torch.testing.assert_close(together[[row]], alone)
    candidates = np.array([[middle, size + 1], [middle, 91], [middle, 92]], np.int32)
    of_candidates = trained.score(Questions(entities, relations, [one, other]), candidates)
    assert of_candidates[1, 0] == plain[0, middle]
    assert of_candidates[2, 0] == together[2, middle]
    assert of_candidates[0, 0] != together[0, middle], "a candidate's facts are known"


def test_what_a_relation_says_that_training_has_not_seen_counts_for_nothing(trained):
    """Its weights are as they were drawn."""
    inference, questions = trained.kg.inference, Questions(np.array([90], np.int32), np.array([1], np.int32))
    torch.manual_seed(0)
    models = []
    for more in ([], [[90, 2, 93], [91, 2, 120]]):
        facts = np.concatenate([inference, np.array(more, np.int32).reshape(-1, 3)])
        models.append(PathModel(graph_of(trained.kg.train, 121, 3, inference=facts), trained.config).eval())
    models[1].load_state_dict(models[0].state_dict())
    torch.testing.assert_close(models[1].score(questions), models[0].score(questions))
    assert not models[1].knows_entities()[120]
    new = [NewEntityText(f"by {relation}", facts=(Fact(relation, 91, "it"),)) for relation in (1, 2, 5)]
    about = Questions(np.arange(121, 124, dtype=np.int32), np.zeros(3, np.int32), new)
    assert models[1].knows_questions(about).tolist() == [True, False, False]


def test_a_dense_graph_beside_it_changes_no_answer(trained):
    """Degrees are measured by those of training, whatever else is known."""
    dense = np.random.default_rng(0).integers([90, 0, 90], [120, 2, 120], (200, 3))
    questions = Questions(trained.kg.train[:5, 0], trained.kg.train[:5, 1])
    scores = []
    for inference in (trained.kg.inference, np.unique(dense, axis=0)):
        other = PathModel(graph_of(trained.kg.train, 120, 2, inference=inference), trained.config).eval()
        other.load_state_dict(trained.state_dict())
        scores.append(other.score(questions)[:, :90])
    torch.testing.assert_close(*scores)


def test_what_an_update_adds_elsewhere_changes_no_answer(trained, tmp_path):
    """Nor does it in the run that the update leaves behind."""
    dense = np.unique(np.random.default_rng(0).integers([120, 0, 120], [150, 2, 150], (200, 3)), axis=0)
    kg = graph_of(np.concatenate([trained.kg.train, dense]), 150, 2, inference=trained.kg.inference)
    questions = Questions(trained.kg.train[:5, 0], trained.kg.train[:5, 1])
    grown = trained.grow(kg)
    grown.save(tmp_path)
    for model in (grown, PathModel.load(tmp_path, kg, trained.config)):
        torch.testing.assert_close(model.score(questions)[:, :120], trained.score(questions))


def test_a_neighbourhood_that_holds_all_that_can_be_reached_scores_it_as_the_whole_graph(trained):
    test = trained.kg.test[:3]
    questions = Questions(test[:, 0], test[:, 1])
    whole = trained.score(questions)
    config = trained.config
    trained.config = config.replace(neighbourhood=10)
    near = trained.score(questions)
    trained.config = config
    for row, (head, _, tail) in enumerate(test.tolist()):
        family = np.array([head, head + 1, tail])
        torch.testing.assert_close(near[row, family], whole[row, family], rtol=1e-4, atol=1e-4)
        others = np.setdiff1d(np.arange(trained.kg.num_entities), family)
        assert (near[row, others] < near[row, family].min()).all()


@pytest.mark.parametrize("exclude", ["pair", "edge"])
def test_edges_asked_about_are_never_in_the_graph_of_their_step(exclude):
    random = np.random.default_rng(0)
    train = np.unique(random.integers(0, [8, 3, 8], (60, 3)), axis=0)
    model = PathModel(graph_of(train, 8, 3), PathConfig(dim=4, layers=2, exclude=exclude))
    sampler = make_sampler(model.kg, SamplingConfig(sampler="random", batch_size=8), 0, model.needs)
    for step in range(5):
        batch = sampler.draw(step)
        graph = model.training_graph.without(model.collate(batch).edges)
        columns = (part.tolist() for part in (graph.source, graph.relation, graph.target, graph.keep))
        left = {(u, r, v) for u, r, v, kept in zip(*columns, strict=True) if kept}
        everything = {(h, r, t) for h, r, t in train.tolist()} | {(t, r + 3, h) for h, r, t in train.tolist()}
        asked = set(zip(batch.heads.tolist(), batch.relations.tolist(), batch.tails.tolist(), strict=True))
        pairs = {(h, t) for h, _, t in asked}
        gone = {(u, r, v) for u, r, v in everything if ((u, v) in pairs if exclude == "pair" else (u, r, v) in asked)}
        assert left == everything - gone


def test_degrees_do_not_tell_which_edges_were_left_out():
    train = np.array([(0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 0)])
    model = PathModel(graph_of(train, 4, 1), PathConfig(dim=4, layers=2))
    whole = model.training_graph
    without = whole.without(torch.tensor([0, 1]))
    smaller = PathModel(graph_of(train[1:], 4, 1), PathConfig(dim=4, layers=2)).training_graph
    removed = set(whole.target[:2].tolist()) | set(whole.source[:2].tolist())
    assert removed
    assert torch.equal(without.count, 1 + torch.bincount(without.target[without.keep].long(), minlength=4))
    torch.testing.assert_close(without.scale * whole.typical, without.count.log())
    assert smaller.typical < whole.typical


def test_other_known_answers_are_not_counted_as_wrong():
    train = np.array([(0, 0, 1), (0, 0, 2), (3, 0, 1), (3, 0, 4)])
    model = PathModel(graph_of(train, 5, 1), PathConfig(dim=4, layers=2))
    sampler = make_sampler(model.kg, SamplingConfig(sampler="random", batch_size=8), 0, model.needs)
    batch = model.collate(sampler.draw(0))
    pairs = set(zip(batch.rows.tolist(), batch.columns.tolist(), strict=True))
    for row, (head, relation, tail) in enumerate(zip(batch.heads, batch.relations, batch.tails, strict=True)):
        answers = set(model.kg.known_train.answers(int(head), int(relation)).tolist()) - {int(tail)}
        assert {column for r, column in pairs if r == row} == answers


@pytest.mark.parametrize("apart", [0, 1, 12])
def test_a_step_computes_entities_without_training_triples_as_one_and_learns_as_if_of_each(apart):
    """Against a softmax over the whole graph; facts that training does not have change nothing."""
    random = np.random.default_rng(0)
    train = np.unique(random.integers(0, [8, 3, 8], (40, 3)), axis=0)
    train = np.append(train, [(8, 0, 9)], axis=0)  # left without edges where it is asked
    places = np.sort(random.choice(10 + apart, 10, replace=False))
    others = np.setdiff1d(np.arange(10 + apart), places)
    train = np.stack([places[train[:, 0]], train[:, 1], places[train[:, 2]]], 1)
    facts = np.array([(others[0], 0, others[1]), (others[1], 1, others[2])]) if apart > 2 else train[:0]
    kg = graph_of(train, 10 + apart, 3, inference=facts)
    torch.manual_seed(0)
    model = PathModel(kg, PathConfig(dim=4, layers=2))
    assert model.training_graph.num_nodes == 10 + min(apart, 1)
    whole = MessageGraph.build(train, 10 + apart, 3, typical=model.training_graph.typical)
    arrays = [part.numpy() for part in (whole.ptr, whole.source, whole.relation)]
    sampler = make_sampler(kg, SamplingConfig(sampler="random", batch_size=8), 0, model.needs)
    for step in range(len(train) // 4 + 1):
        drawn = sampler.draw(step)
        loss, _ = model.loss(model.collate(drawn))
        heads, relations, tails = (torch.from_numpy(p).long() for p in (drawn.heads, drawn.relations, drawn.tails))
        edges = find_edges(*arrays, np.stack([drawn.heads, drawn.tails], 1), drawn.relations)
        scores = model(heads, relations, whole.without(torch.from_numpy(edges)))
        for row, (head, relation, tail) in enumerate(torch.stack([heads, relations, tails], 1).tolist()):
            known = kg.known_train.answers(head, relation)
            scores[row, known[known != tail].tolist()] = -torch.inf
        wanted = torch.nn.functional.cross_entropy(scores, tails)
        torch.testing.assert_close(loss, wanted)
        parameters = list(model.parameters())
        for own, other in zip(*(torch.autograd.grad(part, parameters) for part in (loss, wanted)), strict=True):
            torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-6)


def test_a_run_that_does_not_say_what_degrees_were_measured_by_has_those_of_all_entities(tmp_path):
    train = np.array([(0, 0, 1), (1, 0, 2), (2, 0, 3)])
    model = PathModel(graph_of(train, 9, 1), PathConfig(dim=4, layers=2))
    model.save(tmp_path)
    assert PathModel.load(tmp_path, model.kg, model.config).graph.typical == model.graph.typical
    (tmp_path / "degrees.json").unlink()
    earlier = PathModel.load(tmp_path, model.kg, model.config).graph.typical
    assert earlier == pytest.approx(np.log([2, 3, 3, 2]).sum() / 9)
    assert model.graph.typical == pytest.approx(np.log([2, 3, 3, 2]).sum() / 4)
