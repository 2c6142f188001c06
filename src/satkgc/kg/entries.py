"""The benchmarks that go by a name: what each must count, and where the public gets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from satkgc.kg import public_forms
from satkgc.kg.graph import KnowledgeGraph


@dataclass(frozen=True)
class Counts:
    """What a graph has been published to hold."""

    entities: int
    relations: int
    train: int
    valid: int
    test: int

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> Counts:
        """What it holds."""
        return cls(graph.num_entities, graph.num_relations, len(graph.train), len(graph.valid), len(graph.test))


@dataclass(frozen=True)
class PublicFile:
    """A file as published: the folder and name it is kept under, and its address."""

    folder: str
    name: str
    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class Entry:
    """A graph in the catalogue."""

    name: str
    about: str
    counts: Counts
    archive: str | None = None  # its name, less .tar.xz, in the folder SATKGC_DATA
    sha256: str | None = None  # of that archive
    files: tuple[PublicFile, ...] = ()
    convert: Callable[[public_forms.Files, Path], None] | None = None
    bundled: Path | None = None  # comes with the package
    options: dict[str, Any] = field(default_factory=dict)


def _published(folder: str, base: str, *names: str) -> tuple[PublicFile, ...]:
    return tuple(PublicFile(folder, name, f"{base}/{name}") for name in names)


_GITHUB = "https://raw.githubusercontent.com"
_SPLITS = ("train.txt", "valid.txt", "test.txt")
_FREEBASE = _published(
    "FB15k-237",
    f"{_GITHUB}/intfloat/SimKGC/HEAD/data/FB15k237",
    *_SPLITS,
    "FB15k_mid2name.txt",
    "FB15k_mid2description.txt",
)


def _wikidata(setting: str, sha256: str) -> tuple[PublicFile, ...]:
    base = "https://huggingface.co/datasets/intfloat/wikidata5m/resolve/6b2b09672129e280c0c9da97ab58154e9d535e6b"
    alias = "0330f580c9f7a57cbad949ac380835fdd2a2e14d96cc0f13fc435401d6b463a8"
    names = {f"wikidata5m_{setting}.tar.gz": sha256, "wikidata5m_alias.tar.gz": alias, "wikidata5m_text.txt.gz": None}
    return tuple(PublicFile("Wikidata5M", name, f"{base}/{name}", checksum) for name, checksum in names.items())


CATALOGUE = (
    Entry(
        "wordnet-sample",
        "common WordNet synsets with definitions; comes with the package, trains in minutes",
        Counts(3_654, 14, 6_567, 320, 320),
        bundled=Path(__file__).parent / "data" / "wordnet-sample",
    ),
    Entry(
        "WN18RR",
        "WordNet synsets with definitions; sparse, mostly a hierarchy",
        Counts(40_943, 11, 86_835, 3_034, 3_134),
        "WN18RR",
        "8242087bda18cae0d13e56709d2b24739db8b9adf635299f769cbf9f6f147a58",
        _published("WN18RR", f"{_GITHUB}/intfloat/SimKGC/HEAD/data/WN18RR", *_SPLITS, "wordnet-mlj12-definitions.txt"),
        public_forms.simkgc_wordnet,
    ),
    Entry(
        "FB15k-237",
        "Freebase topics with descriptions; dense",
        Counts(14_541, 237, 272_115, 17_535, 20_466),
        "FB15k-237",
        "ffac9de5dcde64bbc879a6ba956847e219976daa3fa157ac2774a646a1b49d8f",
        _FREEBASE,
        public_forms.simkgc_freebase,
        options={"textless": "allow"},
    ),
    Entry(
        "FB15k-237N",
        "FB15k-237 without the relations that mediator nodes make up",
        Counts(13_104, 93, 87_282, 7_041, 8_226),
        "FB15k-237N",
        "6d787a1abec35ea0490772d196354db7383d493e3a92cd7729d9dd627cd97ea5",
        _published(
            "FB15k-237N",
            f"{_GITHUB}/THU-KEG/PKGC/HEAD/dataset/FB15K-237-N",
            *_SPLITS,
            "entity2label.txt",
            "entity2definition.txt",
        ),
        public_forms.pkgc,
        options={"textless": "allow"},
    ),
    Entry(
        "BLP-FB15k-237-inductive",
        "FB15k-237 split so that valid and test ask for entities unseen in train",
        Counts(14_541, 237, 215_082, 42_164, 52_870),
        "BLP_FB15k-237_ind",
        "d419166dbf7b09152512c2765416787a0204f76bc65876143651bcd39a61decf",
        (
            *_FREEBASE,
            *_published(
                "BLP_FB15k-237_ind",
                f"{_GITHUB}/zjunlp/KNN-KG/6169b961cb97ba77b5fbcdf6dd510290162b318a/dataset/FB15k-237_ind",
                "dev-ents.txt",
                "test-ents.txt",
            ),
        ),
        public_forms.blp_freebase,
        options={"textless": "allow"},
    ),
    Entry(
        "UMLS",
        "Types of medical concepts with long descriptions; tiny",
        Counts(135, 46, 5_216, 652, 661),
        "UMLS",
        "185a8d8df3f1307dbaa91fd9a6b0d69f0c95747c272fe742aeabbe02872c5603",
        _published(
            "UMLS",
            f"{_GITHUB}/yao8839836/kg-bert/HEAD/data/umls",
            *("train.tsv", "dev.tsv", "test.tsv", "entity2text.txt", "entity2textlong.txt", "relation2text.txt"),
        ),
        public_forms.kg_bert,
    ),
    # The paper's table repeats valid's 5,163 for test; the published file holds 5,133 triples.
    Entry(
        "Wikidata5M-transductive",
        "Wikidata entities with the first section of their Wikipedia page; large",
        Counts(4_594_485, 822, 20_614_279, 5_163, 5_133),
        "Wikidata5M-transductive",
        None,
        _wikidata("transductive", "383160990b41c0905fc03f4a8afbb9b12be1ca3591e026bde6cdc94a59542597"),
        public_forms.wikidata5m,
        options={"textless": "allow"},
    ),
    # The paper's 4,579,609 are the entities of train; valid has 7,374 and test 7,475 others.
    Entry(
        "Wikidata5M-inductive",
        "Wikidata5M split so that train, valid and test share no entity",
        Counts(4_579_609 + 7_374 + 7_475, 822, 20_496_514, 6_699, 6_894),
        "Wikidata5M-inductive",
        None,
        _wikidata("inductive", "955081232cc2de859710bfe3a147f7d8314524010fe5f8c420bb74fdfee4f42a"),
        public_forms.wikidata5m,
        options={"textless": "allow"},
    ),
)
