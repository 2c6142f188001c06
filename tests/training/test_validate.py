import torch

import satkgc
from satkgc.evaluation import EvaluationConfig
from satkgc.models.text import EncoderConfig, Towers
from satkgc.text import TextConfig, Texts
from satkgc.training.validate import Validation


def test_all_triples_are_ranked_again_only_when_that_can_differ(tiny_backbone) -> None:  # type: ignore[no-untyped-def]
    kg = satkgc.KnowledgeGraph.load("wordnet-sample")
    towers = Towers.create(EncoderConfig(backbone=str(tiny_backbone))).eval()
    texts = Texts(kg, towers.tokenizer, TextConfig(max_tokens=48, neighbours=0))
    whole, part = (Validation(kg, texts, EvaluationConfig(), triples, 0) for triples in (0, 20))
    seen = whole(towers)
    part(towers)
    assert len(part.latest.triples) == 20
    assert whole.of_all(towers, again=False) is whole.latest
    assert part.of_all(towers, again=False).metrics() == seen
    with torch.no_grad():
        for parameter in towers.parameters():
            parameter.mul_(-0.5).add_(0.01)
    assert whole.of_all(towers, again=True).metrics() != seen
