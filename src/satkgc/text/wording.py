"""The words: strings of entities and relations, before any tokenizer sees them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from satkgc.text.config import TextConfig

INVERSE = "inverse "


def entity_text(name: str, description: str, config: TextConfig, sep: str, whole: bool = False) -> str:
    """An entity's text without neighbours (Appendix "Input Format").

    `sep` is the tokenizer's separator, which stands between name and description in the "sep" format. A `whole` text
    reads all of the description.
    """
    name = name.strip()
    words = description.split()
    if config.description_words and not whole:
        words = words[: config.description_words]
    text = " ".join(words)
    if config.entity_format == "sep":
        return f"{name}{sep}{text}"
    # "Ska is a music genre" reads "Ska: is a music genre"; "cat" is no repetition in front of "category".
    rest = text[len(name) :]
    if name and text.startswith(name) and not rest[:1].isalnum():
        text = rest.strip()
    return f"{name}: {text}".strip()


def full_text(
    name: str,
    description: str,
    near: Sequence[tuple[int, str]],
    config: TextConfig,
    sep: str,
    label: Callable[[int], str],
) -> str:
    """An entity's text, and what follows it of its neighbours: directed relations and names, in order."""
    lists = len(near) > 0 and config.names_neighbours(description)
    text = entity_text(name, description, config, sep, whole=config.reads_whole and not lists)
    return text + neighbours_text(near, config, label) if lists else text


def neighbours_text(near: Iterable[tuple[int, str]], config: TextConfig, label: Callable[[int], str]) -> str:
    """What follows a short text, of (directed relation, name) pairs in order: names alone, or by relation."""
    if not config.neighbour_relations:
        return "".join(f" {name.strip()}" for _, name in list(near)[: config.neighbours])
    parts = []
    for directed, pairs in groupby(near, key=lambda pair: pair[0]):
        names = [name.strip() for _, name in pairs][: config.neighbours]
        parts.append(f" ; {label(directed)} : {' , '.join(names)}")
    return "".join(parts)


def relation_text(id: str, name: str, config: TextConfig, inverse: bool = False) -> str:
    """A relation's text; an inverse one says so first."""
    text = name.strip()
    if config.relation_order == "leaf-first" and id.startswith("/"):
        groups = [" ".join(group.strip(".").split("_")).strip() for group in id.split("/")]
        text = " ".join(dict.fromkeys(group for group in reversed(groups) if group))  # each word group once
    return INVERSE + text if inverse else text


def relation_label(id: str, name: str, inverse: bool = False) -> str:
    """A relation's name where neighbours are listed by it; the leaf of an id like `/people/person/profession`, if that
    is all the name there is."""
    own = re.split(r"[\s/_]+", name.strip("/ ")) != re.split(r"[\s/_]+", id.strip("/ "))
    text = name if own or not id.startswith("/") else id.rsplit("/", 1)[-1].replace("_", " ")
    return INVERSE + text.strip() if inverse else text.strip()
