"""New entities that are one slip from a known one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, Vocabulary, read_more, refuse_mistyped

IDS = ["DOID:1003", "Q1000", "aspirin", "http://x.org/Berlin", "dog.n.01", "type i", "Gabon", "Müller"]
NAMES = ["liver disease", "Austria", "aspirin", "Berlin", "dog", "type i", "Gabon", "Müller"]


@pytest.fixture
def kg():
    text = pa.array([""] * len(IDS))
    relations = Vocabulary.build("relation", *(pa.array([text]) for text in ("near", "near", "")))
    entities = Vocabulary.build("entity", pa.array(IDS), pa.array(NAMES), text)
    return KnowledgeGraph.from_arrays("known", entities, relations, [[0, 0, 1]], [], [])


def take(kg, folder, ids, **options):
    """What an update reads of triples of these and a known entity."""
    file = folder / "new.csv"
    file.write_text("head,relation,tail\n" + "".join(f"{id},near,Q1000\n" for id in ids), encoding="utf-8")
    more = read_more([file], options)
    refuse_mistyped(kg, more, [file], options)
    return more


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("DOID:10O3", "DOID:1003"),
        ("aspirn", "aspirin"),
        ("asprini", None),  # two slips
        ("asipirin", "aspirin"),
        ("apsirin", "aspirin"),
        ("Aspirin", "aspirin"),
        ("http://x.org/Berlim", "http://x.org/Berlin"),
        ("http://y.org/Berlin", None),
        ("Q1001", None),
        ("DOID:1004", None),
        ("dog.v.01", None),
        ("type ii", None),
        ("austria", "Q1000"),  # a name in the place of an id
        ("Mueller", None),
        ("Mülller", "Müller"),
        ("entirely new", None),
    ],
)
def test_what_looks_like_a_slip_is_refused(kg, tmp_path, written, meant):
    if meant is None:
        assert take(kg, tmp_path, [written]).entities.find(written) is not None
        return
    with pytest.raises(SatkgcError, match=f"no entity '{written}', which looks like '{meant}'") as told:
        take(kg, tmp_path, ["entirely new", "Gabon", written, written])
    assert str(told.value).startswith(f"{tmp_path / 'new.csv'}:4: ")


def test_what_is_listed_or_described_is_meant(kg, tmp_path):
    (tmp_path / "listed.csv").write_text("id,name\naspirn,aspirn\n")
    with pytest.raises(SatkgcError, match=r"'aspirn', which .*, nor 1 more of this sort; correct it, or, if it is new"):
        take(kg, tmp_path, ["aspirn", "Gabonn"])
    with pytest.raises(SatkgcError, match="no entity 'Gabonn'"):
        take(kg, tmp_path, ["aspirn", "Gabonn"], entities=[tmp_path / "listed.csv"])
    take(kg, tmp_path, ["aspirn"], entities=[tmp_path / "listed.csv"])
    (tmp_path / "named.csv").write_text("head,relation,tail,head_name,tail_name\naspirn,near,Q1000,other,Austria\n")
    refuse_mistyped(kg, read_more([tmp_path / "named.csv"], {}), [tmp_path / "named.csv"], {})
