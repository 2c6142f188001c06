"""Small graphs in the very forms in which the benchmarks are published."""

from __future__ import annotations

import gzip
import io
import tarfile
from dataclasses import dataclass, field

from satkgc.kg import Counts


@dataclass(frozen=True)
class Published:
    """The files, and what a reader should make of them."""

    entry: str
    files: dict[str, bytes]
    counts: Counts
    entities: dict[str, tuple[str, str]]
    relations: dict[str, str]
    held_out: dict[str, set[str]] = field(default_factory=dict)


def rows(*lines: str) -> bytes:
    """Cells are written with blanks between them, for the eye."""
    return "".join("\t".join(line.split(" ")) + "\n" for line in lines).encode()


def tar_gz(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(f"{name}.txt")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


WORDNET = Published(
    "WN18RR",
    {
        "train.txt": rows("00001740 _hypernym 00002", "00002 _also_see 00003", "00003 _hypernym 00001740"),
        "valid.txt": rows("00002 _hypernym 00003"),
        "test.txt": rows("00004 _also_see 00002"),
        "wordnet-mlj12-definitions.txt": (
            b"00001740\t__take_a_breath_VB_1\tdraw air into, and expel out of, the lungs\n"
            b"00002\t__A-team_NN_2\ta group of elite soldiers\n00003\t__x_JJ_1\tthe letter\n"
            b"00004\t__out_of_NN_11\tx\n09999\t__unused_NN_1\tin no triple\n"
        ),
    },
    Counts(4, 2, 3, 1, 1),
    {
        "00001740": ("take a breath", "draw air into, and expel out of, the lungs"),
        "00002": ("A-team", "a group of elite soldiers"),
        "00003": ("x", "the letter"),
        "00004": ("out of", "x"),
    },
    {"_hypernym": "hypernym", "_also_see": "also see"},
)

_FREEBASE = {
    "train.txt": (
        rows("/m/a /film/film/genre /m/b", "/m/b /people/person_x./a/b /m/a", "/m/a /film/film/genre /m/c")
        + rows("/m/c /film/film/genre /m/d")
    ),
    "valid.txt": rows("/m/c /film/film/genre /m/b"),
    "test.txt": rows("/m/d /film/film/genre /m/a"),
    "FB15k_mid2name.txt": b"/m/a\tThe_Apartment\n/m/b\tComedy\n/m/c\tDrama\n/m/d\tDigby\n/m/z\tUnused\n",
    "FB15k_mid2description.txt": (
        b'/m/a\t"A film by \\"Billy\\" Wilder.\\nIt is set in \\u00C5."@en\n/m/b\t"Funny."@en\n/m/d\t"A dog."@en\n'
    ),
}
_FREEBASE_TEXTS = {
    "/m/a": ("The Apartment", 'A film by "Billy" Wilder. It is set in Å.'),
    "/m/b": ("Comedy", "Funny."),
    "/m/c": ("Drama", ""),
    "/m/d": ("Digby", "A dog."),
}
_FREEBASE_RELATIONS = {"/film/film/genre": "film film genre", "/people/person_x./a/b": "people person x. a b"}
FREEBASE = Published("FB15k-237", _FREEBASE, Counts(4, 2, 4, 1, 1), _FREEBASE_TEXTS, _FREEBASE_RELATIONS)

INDUCTIVE = Published(
    "BLP-FB15k-237-inductive",
    {
        **_FREEBASE,
        "entity2textlong_dev.txt": b"/m/d\tDigby , A dog.\n",
        "entity2textlong_test.txt": b"/m/d\tDigby , A dog.\n/m/c\tDrama\n",
    },
    Counts(4, 2, 2, 1, 3),  # three triples touch c, one of them d as well; of the others one touches d
    _FREEBASE_TEXTS,
    _FREEBASE_RELATIONS,
    {"valid": {"/m/d"}, "test": {"/m/c"}},
)

PKGC = Published(
    "FB15k-237N",
    {
        **{name: _FREEBASE[name] for name in ("train.txt", "valid.txt", "test.txt")},
        "entity2label.txt": b"/m/a\tthe apartment\n/m/b\tcomedy\n/m/c\tdrama\n/m/d\tdigby\n",
        "entity2definition.txt": b"/m/a\t1960 film\n/m/d\tdog in a film\n",
    },
    Counts(4, 2, 4, 1, 1),
    {
        "/m/a": ("the apartment", "1960 film"),
        "/m/b": ("comedy", ""),
        "/m/c": ("drama", ""),
        "/m/d": ("digby", "dog in a film"),
    },
    _FREEBASE_RELATIONS,
)

UMLS = Published(
    "UMLS",
    {
        "train.tsv": rows("alga isa plant", "plant isa organism", "virus affects plant"),
        "dev.tsv": rows("alga isa organism"),
        "test.tsv": rows("virus affects alga", "virus affects organism"),
        "entity2text.txt": b"alga\talga\nplant\tplant\norganism\tan organism\nvirus\tvirus",
        "entity2textlong.txt": b"alga\tAlgae  are diverse.\nplant\tPlants are green.\norganism\tLives.\nvirus\tV.\n",
        "relation2text.txt": b"isa\tis a\naffects\taffects",
    },
    Counts(4, 2, 3, 1, 2),
    {
        "alga": ("alga", "Algae are diverse."),
        "plant": ("plant", "Plants are green."),
        "organism": ("an organism", "Lives."),
        "virus": ("virus", "V."),
    },
    {"isa": "is a", "affects": "affects"},
)

_ALIASES = tar_gz(
    wikidata5m_entity=b"Q1\tthe first\t1st\nQ2\tsecond\nQ3\tthird\nQ5\tfifth\nQ9\tunused\n",
    wikidata5m_relation=b"P1\tpart  of\tin\nP9\tunused\n",
)
_PAGES = gzip.compress(b"Q9\tnobody asks\nQ2\tSecond comes\tafter first.\nQ1\tFirst things first.\n")
_WIKIDATA = {
    "Q1": ("the first", "First things first."),
    "Q2": ("second", "Second comes after first."),
    "Q3": ("third", ""),
    "Q4": ("Q4", ""),  # neither alias nor page: the id has to do
    "Q5": ("fifth", ""),
}


def _wikidata(setting: str, train: bytes, valid: bytes, test: bytes) -> dict[str, bytes]:
    splits = {"train": train, "valid": valid, "test": test}
    triples = tar_gz(**{f"wikidata5m_{setting}_{split}": data for split, data in splits.items()})
    return {
        f"wikidata5m_{setting}.tar.gz": triples,
        "wikidata5m_alias.tar.gz": _ALIASES,
        "wikidata5m_text.txt.gz": _PAGES,
    }


TRANSDUCTIVE_5M = Published(
    "Wikidata5M-transductive",
    _wikidata("transductive", rows("Q1 P1 Q2", "Q3 P2 Q4", "Q1 P1 Q5"), rows("Q2 P1 Q3"), rows("Q4 P1 Q1")),
    Counts(5, 2, 3, 1, 1),
    _WIKIDATA,
    {"P1": "part of", "P2": "P2"},
)
INDUCTIVE_5M = Published(
    "Wikidata5M-inductive",
    _wikidata("inductive", rows("Q1 P1 Q1"), rows("Q2 P1 Q3"), rows("Q4 P1 Q5", "Q5 P1 Q4")),
    Counts(5, 1, 1, 1, 2),
    _WIKIDATA,
    {"P1": "part of"},
    {"valid": {"Q2", "Q3"}, "test": {"Q4", "Q5"}},
)

GRAIL = Published(
    "WN18RR-v3",
    {
        "WN18RR_v3/train.txt": rows("01 _hypernym 02", "02 _also_see 03", "03 _hypernym 01"),
        "WN18RR_v3/valid.txt": rows("02 _hypernym 03"),
        "WN18RR_v3_ind/train.txt": rows("11 _hypernym 12", "12 _also_see 02", "02 _hypernym 13"),
        "WN18RR_v3_ind/test.txt": rows("12 _hypernym 02", "13 _also_see 11"),
    },
    Counts(7, 2, 3, 1, 2, 3),
    # 02 is in both graphs: two entities.
    {id: (id, "") for id in ("01", "02", "03", "11", "12", "13")} | {"02_ind": ("02 ind", "")},
    {"_hypernym": "hypernym", "_also_see": "also see"},
    {"test": {"11", "12", "13", "02_ind"}},
)

FORMS = [WORDNET, FREEBASE, INDUCTIVE, PKGC, UMLS, TRANSDUCTIVE_5M, INDUCTIVE_5M, GRAIL]
