"""Make the bundled graph `wordnet-sample` from WordNet 3.0.

    apt-get install wordnet-base && python scripts/make_wordnet_sample.py

Takes the synsets that people use most (WordNet counts them in a tagged corpus), what they are directly related to as
far as it was counted at all, and the hypernyms of all these up to the root; keeps the largest connected part. Valid
and test are drawn from the pairs of synsets that train stays connected without; all triples between two synsets, in
either direction, are on one side, so that the mirror of a symmetric relation is no leak. Of relations with an inverse
(hypernym and hyponym) WordNet's upward or outward direction is kept. There is no randomness: what looks random is a
hash. Every id is lemma.part-of-speech.sense, as in dog.n.01.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FILES = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
TYPE_NUMBER = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}  # in sense keys; s is an adjective satellite
RELATIONS = {
    "@": "hypernym", "@i": "instance_hypernym", "%m": "member_meronym", "%p": "has_part", ";c": "domain_topic",
    "^": "also_see", "$": "verb_group", "&": "similar_to", "+": "derivationally_related_form", "!": "antonym",
    "=": "attribute", "*": "entails", ">": "causes", "\\": "pertains_to",
}  # fmt: skip
UPWARD = {"@", "@i"}
COMMON = 1_600  # the most used synsets, from which the rest follows
HELD_OUT = 320  # triples in each of valid and test

Key = tuple[str, str]  # part of speech and offset
Triple = tuple[Key, str, Key]


@dataclass(frozen=True)
class Synset:
    """A line of a data file."""

    type: str
    lexical_file: str
    words: list[tuple[str, int]]  # lemma as written, lexical id
    pointers: list[tuple[str, Key]]
    definition: str


def read_synsets(wordnet: Path) -> dict[Key, Synset]:
    """All synsets of the four data files."""
    synsets: dict[Key, Synset] = {}
    for name, part_of_speech in FILES.items():
        for line in (wordnet / f"data.{name}").read_text("ascii").splitlines():
            if line.startswith("  "):  # the licence
                continue
            body, _, gloss = line.partition(" | ")
            cells = iter(body.split())
            offset, lexical_file, type_ = next(cells), next(cells), next(cells)
            words = [(re.sub(r"\(\w+\)$", "", next(cells)), int(next(cells), 16)) for _ in range(int(next(cells), 16))]
            pointers = []
            for _ in range(int(next(cells))):
                symbol, target, target_pos, _source = next(cells), next(cells), next(cells), next(cells)
                pointers.append((symbol, (target_pos, target)))
            definition = gloss.partition('; "')[0].strip()  # what follows are examples of use
            synsets[part_of_speech, offset] = Synset(type_, lexical_file, words, pointers, definition)
    return synsets


def read_uses(wordnet: Path, synsets: dict[Key, Synset]) -> Counter[Key]:
    """How often each synset was met in the tagged corpus, over all its words."""
    counts = {}
    for line in (wordnet / "cntlist.rev").read_text("ascii").splitlines():
        sense_key, _, count = line.split()
        counts[sense_key] = int(count)
    uses: Counter[Key] = Counter()
    for key, synset in synsets.items():
        head = "::"
        if synset.type == "s":  # a satellite's sense key names the head of its cluster
            word, lexical_id = synsets[next(k for symbol, k in synset.pointers if symbol == "&")].words[0]
            head = f":{word.lower()}:{lexical_id:02d}"
        for word, lexical_id in synset.words:
            sense_key = f"{word.lower()}%{TYPE_NUMBER[synset.type]}:{synset.lexical_file}:{lexical_id:02d}{head}"
            uses[key] += counts.get(sense_key, 0)
    return uses


def read_ids(wordnet: Path, synsets: dict[Key, Synset], wanted: Iterable[Key]) -> dict[Key, str]:
    """lemma.pos.sense of each synset, by its first word, whose senses the index files number."""
    senses: dict[tuple[str, str], list[str]] = {}
    for name, part_of_speech in FILES.items():
        for line in (wordnet / f"index.{name}").read_text("ascii").splitlines():
            if not line.startswith("  "):
                cells = line.split()
                senses[part_of_speech, cells[0]] = cells[-int(cells[2]) :]
    ids = {}
    for pos, offset in wanted:
        lemma = synsets[pos, offset].words[0][0].lower()
        ids[pos, offset] = f"{lemma}.{pos}.{senses[pos, lemma].index(offset) + 1:02d}"
    return ids


def upward_closure(synsets: dict[Key, Synset], start: Iterable[Key]) -> set[Key]:
    """The synsets with all their hypernyms."""
    closed: set[Key] = set()
    todo = list(start)
    while todo:
        key = todo.pop()
        if key not in closed:
            closed.add(key)
            todo += [target for symbol, target in synsets[key].pointers if symbol in UPWARD]
    return closed


def choose(synsets: dict[Key, Synset], uses: Counter[Key]) -> set[Triple]:
    """The triples of the sample: those within the largest connected part of the chosen synsets."""
    common = sorted(synsets, key=lambda key: (-uses[key], key))[:COMMON]
    related = {
        target
        for key in common
        for symbol, target in synsets[key].pointers
        if symbol in RELATIONS and symbol != "+" and uses[target]
    }
    chosen = upward_closure(synsets, related.union(common))
    triples = {
        (key, RELATIONS[symbol], target)
        for key in chosen
        for symbol, target in synsets[key].pointers
        if symbol in RELATIONS and target in chosen
    }
    part = Union()
    for head, _, tail in triples:
        part.join(head, tail)
    sizes = Counter(part.root(key) for key in sorted(chosen))
    largest = sizes.most_common(1)[0][0]
    return {triple for triple in triples if part.root(triple[0]) == largest}


class Union:
    """Disjoint sets, to know what is connected."""

    def __init__(self) -> None:
        self.parent: dict[Key, Key] = {}

    def root(self, key: Key) -> Key:
        """The set's representative."""
        while (above := self.parent.get(key, key)) != key:
            self.parent[key] = self.parent.get(above, above)
            key = above
        return key

    def join(self, a: Key, b: Key) -> bool:
        """Whether they were apart."""
        a, b = self.root(a), self.root(b)
        self.parent[max(a, b)] = min(a, b)
        return a != b


def split(triples: set[Triple]) -> dict[str, list[Triple]]:
    """Train, valid and test; a spanning tree of train is set aside first, so that train stays connected."""
    pairs: dict[tuple[Key, Key], list[Triple]] = {}
    for head, relation, tail in sorted(triples):
        pairs.setdefault((min(head, tail), max(head, tail)), []).append((head, relation, tail))

    def by_hash(pair: tuple[Key, Key]) -> bytes:
        return hashlib.sha256(repr(pair).encode()).digest()

    sides: dict[str, list[Triple]] = {"train": [], "valid": [], "test": []}
    tree = Union()
    for pair in sorted(pairs, key=by_hash):
        free = not tree.join(*pair)
        fits = [side for side in ("test", "valid") if free and len(sides[side]) + len(pairs[pair]) <= HELD_OUT]
        sides[fits[0] if fits else "train"] += pairs[pair]
    return sides


def files(wordnet: Path) -> Iterator[tuple[str, str]]:
    """Name and content of each file of the graph."""
    synsets = read_synsets(wordnet)
    triples = choose(synsets, read_uses(wordnet, synsets))
    ids = read_ids(wordnet, synsets, {key for head, _, tail in triples for key in (head, tail)})
    for side, members in split(triples).items():
        yield (
            f"{side}.tsv",
            "".join(sorted(f"{ids[head]}\t{relation}\t{ids[tail]}\n" for head, relation, tail in members)),
        )
    lines = [f"{id}\t{synsets[k].words[0][0].replace('_', ' ')}\t{synsets[k].definition}\n" for k, id in ids.items()]
    yield "entities.tsv", "".join(sorted(lines))
    names = sorted({relation for _, relation, _ in triples})
    yield "relations.tsv", "".join(f"{name}\t{name.replace('_', ' ')}\n" for name in names)
    lines = (wordnet / "data.noun").read_text("ascii").splitlines()
    licence = [re.sub(r"^ +\d+ ?", "", line).rstrip() for line in lines if line.startswith("  ")]
    yield "LICENSE-WordNet.txt", "\n".join(licence) + "\n"


def main() -> None:
    """Write the folder."""
    package_data = Path(__file__).parents[1] / "src" / "satkgc" / "kg" / "data" / "wordnet-sample"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="where WordNet 3.0 is")
    parser.add_argument("--out", type=Path, default=package_data, help="where to put the graph")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name, content in files(given.wordnet):
        (given.out / name).write_bytes(content.encode())


if __name__ == "__main__":
    main()
