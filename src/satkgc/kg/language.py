"""The language of a graph's texts, guessed: by script, else by the small words that every sentence has."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import numpy as np

from satkgc.kg.graph import KnowledgeGraph

SAMPLE = 1_000  # texts that are looked at
SHARE = 0.03  # of the words have to be small ones of a language
LEAD = 2  # so many times those of English

SMALL_WORDS = {
    "English": "the of and in is to that for with by was are which from a an as it on at or",
    "German": "der die das und ist ein eine des von zu den mit im für auf dem nicht als auch oder wird",
    "French": "le la les et est un une des du dans pour que qui sur au par aux avec ou sont",
    "Spanish": "el la los las y es un una de del en que por para con se su al como o",
    "Portuguese": "o a os as e é um uma do da dos das em que por para com no na ou",
    "Italian": "il lo la gli le e è un una di del della in che per con si dei nel o",
    "Dutch": "de het een en is van in dat op te met voor aan zijn door of bij uit wordt niet",
    "Polish": "i w na z do się jest to że o od przez oraz lub dla nie jako po który są",
    "Swedish": "och i att en ett är av på som för med till den det om eller från inte var vid",
}
_WORDS = {language: frozenset(words.split()) for language, words in SMALL_WORDS.items()}


def text_language(kg: KnowledgeGraph) -> str | None:
    """What the texts are written in: a script that is not Latin, or a language; None where it cannot be told."""
    step = max(1, kg.num_entities // SAMPLE)
    chosen = np.arange(0, kg.num_entities, step)
    texts = kg.entities.descriptions.take(chosen).to_pylist() + kg.entities.names.take(chosen).to_pylist()
    return guess_language([text for text in texts if text])


def guess_language(texts: list[str]) -> str | None:
    """The script or language of most of the texts."""
    text = " ".join(texts).lower()
    letters = Counter(unicodedata.name(letter, "LATIN").split()[0] for letter in text if letter.isalpha())
    if letters and (most := letters.most_common(1)[0])[0] != "LATIN" and most[1] > letters.total() / 2:
        return most[0].title() if most[0] != "CJK" else "Chinese"
    words = re.findall(r"[^\W\d_]+", text)
    counts = {language: sum(word in small for word in words) for language, small in _WORDS.items()}
    best = max(counts, key=lambda language: counts[language])
    if not words or counts[best] < SHARE * len(words):
        return None
    return best if best == "English" or counts[best] >= LEAD * counts["English"] else None
