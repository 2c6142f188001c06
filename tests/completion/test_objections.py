"""Answers that the graph's logic speaks against: marked, pushed behind the others or dropped; types as a filter."""

from __future__ import annotations

import csv
import json
import re
import shutil
from itertools import product

import networkx as nx
import numpy as np
import pytest

from little_world import write_run
from satkgc import SatkgcError
from satkgc.completion import Completer, NewEntity, Question, answer_to_dict, outcome_to_json
from satkgc.kg import ReadOptions, read_graph

pytest_plugins = ["world"]

PREFIXES = """@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""
BANDS, GENRES = 24, 12


def music() -> str:
    """Bands with two members each and a song, genres in a tree, a city each; a drummer is a musician."""
    lines = [PREFIXES, ":Drummer rdfs:subClassOf :Musician . :Musician a owl:Class .\n"]
    for i in range(BANDS):
        lines.append(
            f":band{i} a :Band ; :member :singer{i}, :drummer{i} ; :city :city{i % 5} ; :plays :genre{i % 12} ."
        )
        lines.append(f":singer{i} a :Musician . :drummer{i} a :Drummer . :song{i} a :Song ; :by :band{i} .\n")
    lines += [f":genre{i} skos:broader :genre{(i - 1) // 2} .\n" for i in range(1, GENRES)]
    lines.append(":genre3 skos:related :genre9 . :city0 a :City .\n")
    return "".join(lines)


@pytest.fixture(scope="module")
def bands(tmp_path_factory, tiny_backbone) -> Completer:
    folder = tmp_path_factory.mktemp("music")
    (folder / "music.ttl").write_text(music())
    kg = read_graph(folder / "music.ttl", ReadOptions(split="none"))
    return Completer.load(write_run(folder / "run", kg, tiny_backbone))


def ends(answers):
    return {answer.id.rpartition("/")[2]: answer.objection and answer.objection.kind for answer in answers}


def test_each_kind_of_objection_and_its_reason(bands) -> None:
    size = bands.kg.num_entities
    tree = nx.DiGraph((i, (i - 1) // 2) for i in range(1, GENRES))
    broader = bands.tails("http://e/genre3", "skos:broader", k=size)
    expected = {f"genre{i}": "implied" for i in nx.descendants(tree, 3)} | {"genre1": None}
    expected |= {f"genre{i}": "cyclic" for i in nx.ancestors(tree, 3)}
    assert {name: kind for name, kind in ends(broader).items() if name.startswith("genre") and kind} == {
        name: kind for name, kind in expected.items() if kind
    }
    said = {a.name: a.objection.reason for a in broader if a.objection}
    assert said["genre0"] == "the graph has genre3 – broader – genre1, genre1 – broader – genre0"
    related = ends(bands.tails("http://e/genre9", "skos:related", k=size))
    assert related["genre3"] == "mirrored"
    city = bands.tails("http://e/band3", "http://e/city", k=size)
    assert {a.objection.kind for a in city if not a.known} == {"second_value"}
    assert {a.objection.reason for a in city if not a.known} == {"the graph has band3 – city – city3"}
    member = bands.tails("http://e/band3", "http://e/member", k=size)
    objections = ends(member)
    assert objections["song4"] == objections["band5"] == "wrong_type"
    assert objections["singer3"] is None  # it is known
    assert {objections[f"{kind}{i}"] for kind, i in product(("singer", "drummer"), range(4, BANDS))} == {"second_value"}
    assert objections["genre1"] is None  # nothing says what it is
    assert next(a for a in member if a.name == "song4").objection.reason == "song4 is Song, not Drummer, Musician"


def test_contradictions_come_last_and_what_is_left_keeps_its_order(bands) -> None:
    def asked(how, k):
        return bands.tails("http://e/genre3", "skos:broader", k=k, objections=how)

    size = bands.kg.num_entities
    marked, pushed = asked("mark", 40), asked("push", 40)
    assert [a.score for a in marked] == sorted((a.score for a in marked), reverse=True)
    against = [a for a in marked if a.objection and a.objection.kind == "cyclic"]
    assert against
    assert pushed == [a for a in marked if a not in against] + against != marked
    dropped = asked("drop", size)
    assert dropped == [a for a in asked("mark", size) if a.objection is None]
    assert asked("drop", 7) == dropped[:7]  # others take their place
    assert len(dropped) < size - 1


def test_dropping_looks_deeper_until_there_are_enough(bands, monkeypatch) -> None:
    from satkgc.completion import engine

    assert not bands.heads("http://e/member", "http://e/song1", k=10, objections="drop")  # of nothing
    monkeypatch.setattr(engine, "COMPETITORS", 2)
    genres = [f"http://e/genre{i}" for i in (5, 6, 11, 4)]  # of which three are below it
    (answer,) = bands.tails("http://e/genre2", "skos:broader", k=1, objections="drop", among=genres)
    assert answer.id == "http://e/genre4"


def test_a_check_says_nothing_instead_that_types_forbid(bands) -> None:
    kinds = {"song": "Song", "band": "Band", "singer": "Musician", "drummer": "Musician"}
    others = set()
    for doubt in bands.check(n=1000, relations=["http://e/by", "http://e/member"]):
        head, tail = {"by": ("Song", "Band"), "member": ("Band", "Musician")}[doubt.relation_name]
        for end, kind in ((doubt.asked_head, head), (doubt.asked_tail, tail)):
            said = (end.instead_name or "").rstrip("0123456789")
            assert kinds.get(said, kind) == kind
            others.add(said)
    assert len(others) > 3


def test_a_relation_that_is_asked_for(bands) -> None:
    answers = {a.name: a.objection for a in bands.relations("http://e/genre0", "http://e/genre3", k=100)}
    assert answers["broader"].kind == "cyclic"
    assert all(list(answers.values())[list(answers).index("broader") :])  # behind all that nothing speaks against
    left = bands.relations("http://e/genre0", "http://e/genre3", k=100, objections="drop")
    assert {a.name for a in left} == {name for name, objection in answers.items() if objection is None}


def test_a_type_as_a_filter(bands) -> None:
    size = bands.kg.num_entities
    songs = bands.heads("http://e/by", "http://e/band1", k=size, type="song")
    assert {a.id for a in songs} == {f"http://e/song{i}" for i in range(BANDS)}
    musicians = bands.tails("http://e/band1", "http://e/member", k=size, type="http://e/Musician")
    assert len(musicians) == 2 * BANDS  # drummers are musicians
    among = ["http://e/drummer2", "http://e/song1"]
    both = bands.tails("http://e/band1", "http://e/member", k=size, type="Drummer", among=among)
    assert [a.name for a in both] == ["drummer2"]
    with pytest.raises(SatkgcError, match=r"no entity is of the type 'song3'; types are 'Drummer', .*'City'"):
        bands.tails("http://e/band1", "http://e/member", type="song3")
    with pytest.raises(SatkgcError, match=r"^no entity is of the type 'Sonk'; types are 'Drummer', .*'City'"):
        bands.tails("http://e/band1", "http://e/member", type="Sonk")
    with pytest.raises(SatkgcError, match="a type restricts entities"):
        bands.relations("http://e/band1", "http://e/band2", type="Song")
    counts = {t.name: t.entities for t in bands.types()}
    assert counts == {"Band": BANDS, "Drummer": BANDS, "Musician": BANDS, "Song": BANDS, "City": 1}
    assert [t.name for t in bands.entity("http://e/drummer7").types] == ["Drummer"]


def test_proposals_with_an_entity_of_a_type(bands, tmp_path) -> None:
    def proposed(name, **options):
        bands.propose(tmp_path / name, n=10**5, second_answers=True, implied=True, **options)
        with (tmp_path / name).open() as lines:
            return {(row["head"], row["relation"], row["tail"]): row["score"] for row in csv.DictReader(lines)}

    everything, songs = proposed("all.csv"), proposed("songs.csv", type="song")
    ids = {f"http://e/song{i}" for i in range(BANDS)}
    assert songs == {triple: score for triple, score in everything.items() if ids & {triple[0], triple[2]}}
    assert {len(ids & {head}) for head, _, _ in songs} == {len(ids & {tail}) for _, _, tail in songs} == {0, 1}
    assert len(songs) < len(everything)
    with pytest.raises(SatkgcError, match="no entity is of the type 'song3'; types are"):
        proposed("none.csv", type="song3")


def test_evidence_and_new_entities(bands) -> None:
    evidence = bands.evidence("http://e/genre0", "skos:broader", "http://e/genre3")
    assert evidence.objection.kind == "cyclic"
    assert bands.evidence("http://e/genre3", "skos:broader", "http://e/genre1").objection is None
    kinds = ends(bands.tails(NewEntity("a new band"), "http://e/member", k=bands.kg.num_entities))
    assert (kinds["song3"], kinds["singer3"]) == ("wrong_type", None)


def test_the_file_of_the_run_decides(bands, tmp_path) -> None:
    run = tmp_path / "run"
    shutil.copytree(bands.run, run)
    text = (run / "relations.toml").read_text()
    assert "# 48 of 48 triples" in text
    (run / "relations.toml").write_text("# nothing\n# the end\n")
    assert all(a.objection is None for a in Completer.load(run).tails("http://e/genre3", "skos:broader", k=100))
    Completer.prepare(run)
    assert (run / "relations.toml").read_text() == "# nothing\n# the end\n"  # a person's
    (run / "relations.toml").write_text('[[relation]]\nid = "http://e/cities"\n# the end\n')
    with pytest.raises(SatkgcError, match=r"relations\.toml.*cities"):
        Completer.load(run)
    for cut in (0, len(text) // 2, len(text) - 4):
        (run / "relations.toml").write_text(text[:cut])
        with pytest.raises(SatkgcError, match=r"relations\.toml: (this file was cut short|not TOML)"):
            Completer.load(run)


def test_files_and_json_carry_it(bands) -> None:
    question = Question(head="http://e/genre3", relation="skos:broader", k=60, objections="mark", type=None)
    answers = bands.ask([question])[0]
    line = json.loads(outcome_to_json(question, answers))
    assert line["question"]["objections"] == "mark"
    said = [a["objection"]["kind"] for a in line["answers"] if "objection" in a]
    assert set(said) == {"implied", "cyclic"}
    assert [answer_to_dict(a) for a in answers] == line["answers"]
    with pytest.raises(SatkgcError, match="push, mark, drop"):
        Question(head="a", relation="b", objections="hide")
    assert np.isfinite([a.score for a in answers]).all()


def test_without_types_it_is_told_where_to_say_which_relation_tells_them(run_copy):
    for type in ("Q3", "no entity either"):
        with pytest.raises(SatkgcError, match=f"'{type}'; no relation in the run's relations.toml tells types") as told:
            Completer.load(run_copy).tails("Q1", "near", type=type)
    added = re.search(r"(\[\[relation]]) with the id .* (type = true)", str(told.value))
    logic = run_copy / "relations.toml"
    logic.write_text(f'{added[1]}\nid = "born_in"\n{added[2]}\n{logic.read_text()}')  # what it tells to do helps
    completer = Completer.load(run_copy)
    kg = completer.kg
    head, _, town = next(row for row in kg.train.tolist() if row[1] == kg.relations.index("born_in"))
    answers = completer.tails("Q1", "near", k=90, type=kg.entities.id(town))
    assert kg.entities.id(head) in {answer.id for answer in answers}
