"""What a run says of its model, and how good that is."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from satkgc.completion import Completer
from satkgc.manifest import write_json
from satkgc.training import RunFolder

pytest_plugins = ["world"]


def test_the_ranks_of_relations_add_up_to_those_of_the_run(completer, tmp_path):
    run = shutil.copytree(completer.run, tmp_path / "run")
    assert Completer.load(run).info().quality is None
    report = RunFolder.load(run).evaluate("valid").to_json()
    write_json(run / "metrics.json", {"finished": True, "valid": report})
    info = Completer.load(run).info()
    assert (info.model.kind, info.model.recipe, info.model.finished) == ("text", "satkgc", True)
    assert info.model.backbones == ("tiny-bert",), "and not where on the disk it lay"
    quality = info.quality
    counts = [relation.triples for relation in quality.relations]
    assert counts == sorted(np.bincount(completer.kg.valid[:, 1]).tolist(), reverse=True)
    assert quality.triples == sum(counts) == len(completer.kg.valid)
    for name in ("mrr", "hits_at_1", "hits_at_10"):
        mean = np.average([getattr(relation, name) for relation in quality.relations], weights=counts)
        assert getattr(quality, name) == pytest.approx(mean)
    assert {(relation.id, relation.name) for relation in quality.relations} >= {("born_in", "born in")}
