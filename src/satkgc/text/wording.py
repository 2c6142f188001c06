"""The words: strings of entities and relations, before any tokenizer sees them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby

from satkgc.text.config import TextConfig

INVERSE = "inverse "
Near = Sequence[tuple[int, str]]  # an entity's neighbours in order: directed relations and names


def entity_text(name: str, description: str, config: TextConfig, whole: bool = False) -> str:
    """An entity's text without neighbours, `name: description`; a `whole` one reads all of the description."""
    name = name.strip()
    words = description.split()
    if config.description_words and not whole:
        words = words[: config.description_words]
    text = " ".join(words)
    # "Ska is a music genre" reads "Ska: is a music genre"; "cat" is no repetition in front of "category".
    rest = text[len(name) :]
    if name and text.startswith(name) and not rest[:1].isalnum():
        text = rest.strip()
    return f"{name}: {text}".strip()


def full_text(name: str, description: str, near: Near, config: TextConfig, label: Callable[[int], str]) -> str:
    """An entity's text, and what follows it of its neighbours; `label` words a directed relation."""
    lists = len(near) > 0 and config.names_neighbours(description)
    text = entity_text(name, description, config, whole=config.reads_whole and not lists)
    return text + neighbours_text(near, config, label) if lists else text


def neighbours_text(near: Near, config: TextConfig, label: Callable[[int], str]) -> str:
    """What follows a short text: names alone, or by relation."""
    if not config.neighbours_per_relation:
        return "".join(f" {name.strip()}" for _, name in near[: config.neighbours])
    parts = []
    for directed, pairs in groupby(near, key=lambda pair: pair[0]):
        names = [name.strip() for _, name in pairs][: config.neighbours_per_relation]
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
