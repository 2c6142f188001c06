"""The relation between two entities as what is asked for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from satkgc.completion.relations import RelationCalibration

pytest_plugins = ["world"]


def test_relations_of_a_pair_are_asked_from_both_ends_and_weighed(completer):
    answers = completer.relations("Q3", "Q41")
    assert {a.name for a in answers} == {"born in", "capital of", "knows", "near"}
    assert [a.probability for a in answers] == sorted((a.probability for a in answers), reverse=True)
    engine, logits = completer._engine, {}
    fit, frequency = engine.calibration.relations, engine.names.frequency
    assert fit.questions >= 20
    for answer in answers:
        forth = next(a for a in completer.tails("Q3", answer.id, k=90) if a.id == "Q41")
        back = next(a for a in completer.heads(answer.id, "Q41", k=90) if a.id == "Q3")
        assert answer.score == pytest.approx((forth.score + back.score) / 2, abs=1e-5)
        assert answer.known == forth.known == back.known
        share = (frequency[completer.kg.relations.find(answer.id)] + 1) / (frequency + 1).sum()
        logits[answer.id] = (
            fit.by_tail[0] * forth.score + fit.by_head[0] * back.score + fit.by_frequency * math.log(share)
        )
    assert not any(a.known for a in answers)
    total = sum(math.exp(logit) for logit in logits.values())
    joined = 1 / (1 + math.exp(fit.steep * (fit.none - math.log(total))))
    for answer in answers:
        assert answer.probability == pytest.approx(joined * math.exp(logits[answer.id]) / total, rel=1e-3)
    assert completer.relations("Q3", "Q41", among=("near",)) == [a for a in answers if a.id == "near"]
    assert len(completer.relations("Q3", "Q41", k=2)) == 2


def test_a_least_score_comes_before_the_count_of_relations(completer, monkeypatch):
    by_frequency = replace(completer._engine.calibration, relations=RelationCalibration(by_tail=(0,), by_head=(0,)))
    monkeypatch.setattr(completer._engine, "calibration", by_frequency)
    pairs = [(f"Q{h}", f"Q{t}") for h in range(6) for t in range(40, 44)]
    for pair in pairs:
        first, *others = completer.relations(*pair)
        best = max(others, key=lambda a: a.score)
        if best.score > first.score:
            between = (best.score + first.score) / 2
            found = completer.relations(*pair, k=1, min_score=between)
            assert len(found) == 1
            assert found[0].score > between
            return
    pytest.fail("the most frequent relation has the highest score everywhere")


def test_a_known_relation_of_a_pair_competes_with_the_others(completer):
    h, r, t = completer.kg.valid[0].tolist()
    answers = completer.relations(f"Q{h}", f"Q{t}")
    known = {a.id for a in answers if a.known}
    assert completer.kg.relations.id(r) in known
    left = completer.relations(f"Q{h}", f"Q{t}", drop_known=True)
    assert {a.id for a in left} == {"born_in", "capital_of", "knows", "near"} - known
    assert left == [a for a in answers if not a.known]
    assert 0 < sum(a.probability for a in answers) < 1  # the rest is that there is none
