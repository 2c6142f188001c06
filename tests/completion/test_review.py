"""From a table that a person looked through to what was accepted."""

from __future__ import annotations

import csv
import dataclasses
import shutil
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satkgc.completion import accept_into, accept_proposals
from satkgc.completion.cells import escape, unescape
from satkgc.completion.proposals import propose, write_triples
from satkgc.completion.review import decided_triples
from satkgc.errors import SatkgcError
from satkgc.kg import DECISIONS, Decision, Decisions, KnowledgeGraph, RelationLogic, Vocabulary

pytest_plugins = ["world"]


@pytest.fixture
def reviewed(completer, tmp_path):
    """Proposals of which the second and the fourth were accepted, as a spreadsheet saves them."""
    completer.propose(tmp_path / "missing.csv", n=6, relations=["near"])
    with (tmp_path / "missing.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["accept"] for row in rows] == [""] * 6
    for row, said in zip(rows, ("no", "yes", "", "X", "0", ""), strict=True):
        row["accept"] = said
        row["score"] = row["score"].replace(".", ",")
    with (tmp_path / "reviewed.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return tmp_path / "reviewed.csv"


def test_what_was_accepted_as_rdf_and_as_a_table(completer, reviewed, tmp_path):
    completer.propose(tmp_path / "all.nt", n=6, relations=["near"])
    lines = (tmp_path / "all.nt").read_text().splitlines()
    assert accept_proposals(reviewed, tmp_path / "accepted.nt") == (2, 6)
    assert (tmp_path / "accepted.nt").read_text().splitlines() == [lines[1], lines[3]]
    completer.propose(tmp_path / "all.tsv", n=6, relations=["near"])
    rows = (tmp_path / "all.tsv").read_text().splitlines()
    accept_proposals(reviewed, tmp_path / "accepted.tsv")
    accepted = (tmp_path / "accepted.tsv").read_text().splitlines()
    assert [line.replace("\tyes\t", "\t\t") for line in accepted] == [rows[0], rows[2], rows[4]]
    assert accept_proposals(tmp_path / "accepted.tsv", tmp_path / "again.tsv") == (2, 2)
    assert (tmp_path / "again.tsv").read_text().splitlines() == accepted


def test_a_table_of_which_not_all_was_accepted_is_no_graph(completer, reviewed, tmp_path):
    completer.propose(tmp_path / "unread.csv", n=6, relations=["near"])
    for table in (reviewed, tmp_path / "unread.csv"):
        with pytest.raises(SatkgcError, match="not all of these proposals were accepted; `satkgc accept"):
            KnowledgeGraph.load(table)
    accept_proposals(reviewed, tmp_path / "accepted.csv")
    assert len(KnowledgeGraph.load(tmp_path / "accepted.csv", split="none").train) == 2


def test_what_was_accepted_goes_back_into_the_graph(completer, reviewed, tmp_path):
    kg = completer.kg
    accept_proposals(reviewed, tmp_path / "accepted.csv")
    kg.save(tmp_path / "graph")
    with (tmp_path / "accepted.csv").open(newline="") as file:
        accepted = [(row["head"], row["relation"], row["tail"]) for row in csv.DictReader(file)]
    assert len(accepted) == 2
    more = KnowledgeGraph.load([tmp_path / "graph", tmp_path / "accepted.csv"])
    before, after = (
        [(g.entities.id(h), g.relations.id(r), g.entities.id(t)) for h, r, t in g.train] for g in (kg, more)
    )
    assert after == before + accepted
    for split in ("valid", "test"):
        assert more.split(split).tolist() == kg.split(split).tolist()
    for mine, theirs in ((more.entities, kg.entities), (more.relations, kg.relations)):
        assert (mine.ids, mine.names, mine.descriptions) == (theirs.ids, theirs.names, theirs.descriptions)
    alone = KnowledgeGraph.load(tmp_path / "accepted.csv", split="none")  # with the names and descriptions of proposals
    for index, id in enumerate(alone.entities.ids.to_pylist()):
        known = kg.entities.index(id)
        assert alone.entities.name(index) == kg.entities.name(known)
        assert alone.entities.description(index) == kg.entities.description(known)


def test_a_graph_without_a_split_gets_what_was_accepted_and_no_split(completer, reviewed, tmp_path):
    kg = completer.kg
    KnowledgeGraph.from_arrays("all", kg.entities, kg.relations, kg.train).save(tmp_path / "graph")
    lines = reviewed.read_text(encoding="utf-8-sig").splitlines()
    reviewed.write_text("\n".join([*lines, lines[2]]), encoding="utf-8")  # a row that was copied
    count, grown = accept_into(reviewed, tmp_path / "graph")
    assert (count, len(grown.train), len(grown.valid), len(grown.test)) == (2, len(kg.train) + 2, 0, 0)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("accept", "good", r"reviewed\.csv:1: there is no column 'accept'; give the table"),
        (";yes", ";maybe", r"reviewed\.csv:3: accept is 'maybe'; write yes, or leave it empty"),
        (";near;", ";;", r"reviewed\.csv:2: a triple without head, relation or tail"),
    ],
)
def test_bad_tables_are_one_line_and_write_nothing(reviewed, tmp_path, before, after, message):
    reviewed.write_text(reviewed.read_text(encoding="utf-8-sig").replace(before, after, 1), encoding="utf-8")
    with pytest.raises(SatkgcError, match=message):
        accept_proposals(reviewed, tmp_path / "out.nt")
    assert not (tmp_path / "out.nt").exists()


def test_rows_that_were_emptied_are_passed_over_and_quotes_must_close(reviewed, tmp_path):
    text = reviewed.read_text(encoding="utf-8-sig")
    reviewed.write_text(text + ";" * 10 + "\n", encoding="utf-8")
    assert accept_proposals(reviewed, tmp_path / "out.nt") == (2, 6)
    reviewed.write_text(text.replace("near", '"near', 1), encoding="utf-8")
    with pytest.raises(SatkgcError, match=r"reviewed\.csv:\d+: not a table \(.*\); look for a quote"):
        accept_proposals(reviewed, tmp_path / "second.nt")


@pytest.mark.parametrize("value", ["nan", "inf", "-Infinity"])
def test_a_number_that_no_endpoint_and_no_json_can_hold_is_refused(tmp_path, value):
    (tmp_path / "r.csv").write_text(f"head,relation,tail,probability,accept\na,r,b,{value},yes\n")
    with pytest.raises(SatkgcError, match=rf"r\.csv:2: probability is '{value}'; leave the numbers as they were"):
        accept_proposals(tmp_path / "r.csv", tmp_path / "out.nt")


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_spaces_around_an_id_are_of_the_id(tmp_path, ending):
    rows = [(" b", "r", "a ", "B", "R", "A", 0.5, None, "", ""), ("b", " r", "a", "B", "R", "A", 0.5, None, "", "")]
    write_triples(tmp_path / f"new{ending}", [rows], for_spreadsheet=True)
    text = (tmp_path / f"new{ending}").read_text()
    mark = "," if ending == ".csv" else "\t"
    (tmp_path / f"reviewed{ending}").write_text(text.replace(f"0.500000{mark}{mark}", f"0.500000{mark}{mark}yes"))
    accept_proposals(tmp_path / f"reviewed{ending}", tmp_path / "accepted.tsv")
    lines = (tmp_path / "accepted.tsv").read_text().splitlines()[1:]
    assert [tuple(line.split("\t")[:3]) for line in lines] == [row[:3] for row in rows]


def test_a_table_that_nobody_looked_through_writes_nothing(reviewed, tmp_path):
    reviewed.write_text(reviewed.read_text().replace(";yes", ";").replace(";X", ";"))
    with pytest.raises(SatkgcError, match=r"no row says yes in column 'accept'; write yes"):
        accept_proposals(reviewed, tmp_path / "out.nt")
    assert not (tmp_path / "out.nt").exists()


def test_bad_places(reviewed, tmp_path):
    with pytest.raises(SatkgcError, match=r"cannot tell the form of 'out\.xlsx'"):
        accept_proposals(reviewed, tmp_path / "out.xlsx")
    with pytest.raises(SatkgcError, match=r"missing\.parquet: cannot tell the form of this table"):
        accept_proposals(tmp_path / "missing.parquet", tmp_path / "out.nt")
    with pytest.raises(SatkgcError, match=r"gone\.csv: cannot read the table"):
        accept_proposals(tmp_path / "gone.csv", tmp_path / "out.nt")
    with pytest.raises(SatkgcError, match="the file is there already"):
        accept_proposals(reviewed, reviewed)


QUOTED = [
    ('"a"', "r", 'b "c"', '"Heroes" album', "says", 'open "', 0.5, None, 'a "record"', ""),
    ('a"', "r", '"b', "of two words", '"', '"" twice', 0.25, 0.125, "", "two, or more"),
]


@pytest.mark.parametrize("quoted", [QUOTED, [('"a"', "r", "b", "A", "R", "B", 0.5, None, "", "")]])
def test_a_tsv_table_has_no_quoting_and_is_read_back(tmp_path, quoted):
    rows = [*quoted, ("x", "r", "y", "tab\there", "line\r\nbreak", "", -1.0, None, "two\nlines", "")]
    write_triples(tmp_path / "new.tsv", [rows])
    kg = KnowledgeGraph.load(tmp_path / "new.tsv", split="none")
    triples = [(kg.entities.id(h), kg.relations.id(r), kg.entities.id(t)) for h, r, t in kg.train]
    assert triples == [row[:3] for row in rows]
    text = (tmp_path / "new.tsv").read_text()
    assert accept_proposals(tmp_path / "new.tsv", tmp_path / "accepted.tsv") == (len(rows), len(rows))
    assert (tmp_path / "accepted.tsv").read_text() == text
    assert text.splitlines()[-1] == "x\tr\ty\ttab here\tline break\t\t-1.000000\t\tyes\ttwo lines\t"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_tsv_table_that_a_spreadsheet_saved_is_read_with_its_quotes(tmp_path, end):
    write_triples(tmp_path / "new.csv", [QUOTED])
    with (tmp_path / "new.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    with (tmp_path / "reviewed.tsv").open("w", newline="") as file:
        saved = [[*header, "note"], *([*row[:8], "yes", *row[9:], f"two{end}lines"] for row in rows)]
        csv.writer(file, delimiter="\t", lineterminator=end).writerows(saved)
    assert accept_proposals(tmp_path / "reviewed.tsv", tmp_path / "accepted.csv") == (2, 2)
    assert (tmp_path / "accepted.csv").read_text() == (tmp_path / "new.csv").read_text()


@pytest.mark.parametrize("id", ["a\tb", "a\nb", "a\r"])
def test_ids_that_cannot_stand_in_a_tsv_table_are_refused(tmp_path, id):
    message = r"^[^\n]*new\.tsv: [^\n]*cannot stand in a TSV file: [^\n]*; write \.csv or \.parquet$"
    with pytest.raises(SatkgcError, match=message):
        write_triples(tmp_path / "new.tsv", [[("x", "r", id, "", "", "", 0.5, None, "", "")]])
    assert list(tmp_path.iterdir()) == []
    # And of a graph with such ids before anything is asked.
    entities = Vocabulary.build("entity", pa.array([id]), pa.array(["A"]), pa.array([""]))
    relations = Vocabulary.build("relation", pa.array(["r"]), pa.array(["R"]), pa.array([""]))
    kg = KnowledgeGraph.from_arrays("g", entities, relations, [[0, 0, 0]])
    with pytest.raises(SatkgcError, match=message):
        propose(SimpleNamespace(kg=kg), tmp_path / "new.tsv", 1, [0])


FORMULAS = ["=1+1", "+1", "-2", "@SUM(A1)", "'=x", "''@y", "it's", "'plain", "a=b", "=cmd|' /C calc'!A0"]


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_no_cell_is_a_formula_and_accepting_gives_the_ids_back(tmp_path, ending):
    rows = [(f, "-r", f, f, "=r", f, -0.5, None, f, f) for f in FORMULAS]
    write_triples(tmp_path / f"p{ending}", [rows], for_spreadsheet=True)
    form = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if ending == ".tsv" else {}
    with (tmp_path / f"p{ending}").open(newline="") as file:
        header, *cells = csv.reader(file, **form)
    assert not [cell for row in cells for cell in (*row[:6], *row[8:]) if cell[:1] in tuple("=+-@")]
    assert len({row[0] for row in cells}) == len(FORMULAS)
    with (tmp_path / f"r{ending}").open("w", newline="") as file:
        csv.writer(file, **form, **({"quotechar": None} if form else {})).writerows(
            [header, *([*row[:8], "yes", *row[9:]] for row in cells)]
        )
    accept_proposals(tmp_path / f"r{ending}", tmp_path / "a.parquet")
    table = pa.parquet.read_table(tmp_path / "a.parquet").to_pydict()
    assert table["head"] == table["tail_name"] == table["head_description"] == FORMULAS
    assert set(table["relation"]) == {"-r"}
    accept_proposals(tmp_path / f"r{ending}", tmp_path / "a.csv")  # data again, to be imported
    with (tmp_path / "a.csv").open(newline="") as file:
        assert [row["head"] for row in csv.DictReader(file)] == FORMULAS


@given(st.text(st.sampled_from("'=+-@\t\rab ")))
def test_escapes_are_undone(text):
    assert unescape(escape(text)) == text
    assert not escape(text).startswith(tuple("=+-@\t\r"))


def decide(run, rows, verdicts):
    decisions = Decisions(run / DECISIONS)
    for row, verdict in zip(rows, verdicts, strict=True):
        decisions.add(Decision(row["head"], row["relation"], row["tail"], verdict, row["head_name"]))


@pytest.fixture
def decided(completer, tmp_path, monkeypatch):
    """A run folder of its own beside the completer's graph, in which four of six proposals were decided."""
    run = tmp_path / "run"
    shutil.copytree(completer.run, run)
    monkeypatch.setattr(completer, "run", run)
    completer.propose(tmp_path / "first.csv", n=6, relations=["near"])
    with (tmp_path / "first.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    decide(run, rows, ["accept", "reject", "skip", "accept", "open", "accept"])
    return run, [(row["head"], row["relation"], row["tail"]) for row in rows]


def test_what_was_accepted_or_rejected_on_the_page_is_not_proposed_again(completer, decided, tmp_path):
    _, first = decided
    completer.propose(tmp_path / "second.csv", n=6, relations=["near"])
    with (tmp_path / "second.csv").open(newline="") as file:
        second = [(row["head"], row["relation"], row["tail"]) for row in csv.DictReader(file)]
    assert len(second) == 6
    assert second[:2] == [first[2], first[4]], "what was skipped or taken back is the best that is left"
    assert not {first[i] for i in (0, 1, 3, 5)} & set(second)


def test_the_mirror_of_what_was_rejected_is_left_out_too(completer, decided):
    run, first = decided
    logic = [RelationLogic() for _ in range(completer.kg.num_relations)]
    near = completer.kg.relations.index("near")
    logic[near] = RelationLogic(symmetric=True)
    index = completer.kg.entities.index
    triples = {(index(h), near, index(t)) for h, _, t in (first[i] for i in (0, 1, 3, 5))}
    assert set(decided_triples(run, completer.kg, None)) == triples
    assert set(decided_triples(run, completer.kg, logic)) == triples | {(t, r, h) for h, r, t in triples}


def test_what_was_accepted_on_the_page_has_the_descriptions_of_the_graph(completer, decided, tmp_path):
    run, first = decided
    words = completer.kg.entities
    about = Vocabulary.build("entity", words.ids, words.names, [f"about {id}" for id in words.ids.to_pylist()])
    dataclasses.replace(completer.kg, entities=about).save(run / "graph", overwrite=True)
    decide(run, [{"head": "come since", "relation": "near", "tail": first[0][2], "head_name": "new"}], ["accept"])
    accept_proposals(run, tmp_path / "accepted.csv")
    with (tmp_path / "accepted.csv").open(newline="") as file:
        rows = [(row["head"], row["head_description"], row["tail_description"]) for row in csv.DictReader(file)]
    assert rows[:3] == [(first[i][0], f"about {first[i][0]}", f"about {first[i][2]}") for i in (0, 3, 5)]
    assert rows[3] == ("come since", "", f"about {first[0][2]}")


def test_a_run_that_was_reviewed_is_accepted_into_a_graph(completer, decided, tmp_path):
    run, first = decided
    accepted = [first[i] for i in (0, 3, 5)]
    assert accept_proposals(run, tmp_path / "accepted.csv") == (3, 5)
    with (tmp_path / "accepted.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["head"], row["relation"], row["tail"]) for row in rows] == accepted
    kg = completer.kg
    before = [(kg.entities.id(h), kg.relations.id(r), kg.entities.id(t)) for h, r, t in kg.train]
    for new in (3, 0):  # a new graph, then the same one again, to which nothing is new
        count, grown = accept_into(run, tmp_path / "grown")
        assert count == new
        assert [
            (grown.entities.id(h), grown.relations.id(r), grown.entities.id(t)) for h, r, t in grown.train
        ] == before + accepted
    assert grown.valid.tolist() == kg.valid.tolist()
    assert (grown.name, grown.entities.descriptions) == (kg.name, kg.entities.descriptions)
    for place, message in (
        (run / "graph", r"graph: this is the graph of a run"),
        (tmp_path, r"no graph here; give one that"),
    ):
        with pytest.raises(SatkgcError, match=message):
            accept_into(run, place)
    (run / DECISIONS).unlink()
    with pytest.raises(SatkgcError, match=r"decisions\.jsonl: nothing was accepted in this run; accept some"):
        accept_into(run, tmp_path / "other")
    assert not (tmp_path / "other").exists()
