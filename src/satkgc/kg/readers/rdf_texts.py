"""Names, other names and descriptions of RDF: which predicates give them, and which of several texts is the best."""

from __future__ import annotations

import difflib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from satkgc.errors import SatkgcError
from satkgc.kg.readers.columns import OTHER_NAMES
from satkgc.kg.readers.options import ReadOptions, expand

# The best first, where one language offers several.
NAMES = (
    "rdfs:label", "skos:prefLabel", "schema:name", "schemas:name", "foaf:name", "dct:title", "dc:title",
)  # fmt: skip
OTHER = (
    "skos:altLabel", "schema:alternateName", "schemas:alternateName", "dct:alternative", "oboInOwl:hasExactSynonym",
    "obo:IAO_0000118", "oboInOwl:hasRelatedSynonym", "foaf:nick",
)  # fmt: skip
DESCRIPTIONS = (
    "schema:description", "schemas:description", "rdfs:comment", "dct:description", "skos:definition",
    "obo:IAO_0000115", "oboInOwl:hasDefinition", "dc:description", "dct:abstract", "dbo:abstract", "skos:scopeNote",
    "skos:note",
)  # fmt: skip


class RdfTexts:
    """The texts of nodes, by their numbers."""

    def __init__(self, options: ReadOptions) -> None:
        roles = {"name": options.label, "other": options.alt_label, "description": options.description}
        self._named = {predicate: role for role, predicates in roles.items() for predicate in predicates}
        self._roles: dict[str, tuple[str, int] | None] = {}
        for role, known in (("name", NAMES), ("other", OTHER), ("description", DESCRIPTIONS)):
            for place, predicate in enumerate(known):
                self._roles[expand(predicate)] = role, len(self._named) + place
        self._places = {predicate: place for place, predicate in enumerate(self._named)}
        self._used: set[str] = set()
        self._by_role = {role: BestTexts(options.languages) for role in roles}
        self.names, self.descriptions = self._by_role["name"], self._by_role["description"]
        self._other: dict[int, list[tuple[int, str]]] = {}

    def role(self, predicate: str, prefixes: Mapping[str, str]) -> tuple[str, int] | None:
        """What a predicate gives, and how good it is; those that were chosen come first, by IRI or prefix."""
        for chosen in self._named.keys() - self._used:
            if predicate in (chosen, expand(chosen, prefixes)):
                self._used.add(chosen)
                self._roles[predicate] = self._named[chosen], self._places[chosen]
        return self._roles.get(predicate)

    def offer(self, node: int, role: tuple[str, int], text: str, language: str | None) -> None:
        """Take a text in, if it is better than what the node has."""
        text = " ".join(text.split())
        if not text:
            return
        rank = self._by_role[role[0]].offer(node, role[1], text, language, keep=role[0] != "other")
        if role[0] == "other" and rank is not None:
            self._other.setdefault(node, []).append((rank, text))

    def rank(self, role: tuple[str, int], language: str | None) -> int | None:
        """How good a text is, the lowest best; None for another name in a language nobody asked for."""
        rank, wanted = self._by_role[role[0]].rank(role[1], language)
        return rank if wanted or role[0] != "other" else None

    def has_text(self, node: int) -> bool:
        """Whether anything is said of a node."""
        return bool(self.names.of(node) or self.descriptions.of(node) or node in self._other)

    def other_names(self, node: int) -> list[str]:
        """Other names than the best one, the best first."""
        ranked = sorted(self._other.get(node, ()), key=lambda pair: pair[0])
        return [text for text in dict.fromkeys(text for _, text in ranked) if text != self.names.of(node)][:OTHER_NAMES]

    def refuse_unused(self, predicates: Iterable[str], shown: str) -> None:
        """Refuse a predicate that was chosen and that no statement has."""
        for chosen in self._named.keys() - self._used:
            near = difflib.get_close_matches(chosen, list(predicates), n=3, cutoff=0.5)
            remedy = f"did you mean {' or '.join(near)}?" if near else "`satkgc kg inspect` names those of literals"
            raise SatkgcError(f"no statement has the predicate {chosen}", where=shown, remedy=remedy)

    @property
    def by_language(self) -> Counter[str]:
        """Names and descriptions by their language."""
        return self.names.by_language + self.descriptions.by_language

    def any_preferred(self) -> bool:
        """Whether any name or description is in a preferred language."""
        return self.names.any_preferred() or self.descriptions.any_preferred()


class BestTexts:
    """The best text so far of each node: by language, then by predicate, then the first."""

    STEP = 1 << 10  # more than there are predicates

    def __init__(self, languages: Sequence[str]) -> None:
        self._languages = [language.lower() for language in languages]
        self.by_language: Counter[str] = Counter()  # texts by language, in lower case
        self._texts: list[str] = []  # by node
        self._ranks = array("i")

    def offer(self, node: int, place: int, text: str, language: str | None, keep: bool = True) -> int | None:
        """Take the text if it is better than what the node has; its rank, or None in a language nobody asked for."""
        rank, wanted = self.rank(place, language)
        if keep:
            missing = node + 1 - len(self._texts)
            if missing > 0:
                self._texts += [""] * missing
                self._ranks.extend([2**31 - 1] * missing)
            if rank < self._ranks[node]:
                self._texts[node], self._ranks[node] = text, rank
        return rank if wanted else None

    def rank(self, place: int, language: str | None) -> tuple[int, bool]:
        """How good a text of this predicate and language is, and whether anybody asked for the language."""
        language = (language or "").lower()
        self.by_language[language] += 1
        by_language = self._language_rank(language)
        return by_language * self.STEP + place, by_language <= 2 * len(self._languages)

    def of(self, node: int) -> str:
        """The text of a node, or an empty string."""
        return self._texts[node] if node < len(self._texts) else ""

    def any_preferred(self) -> bool:
        """Whether any text so far is in a preferred language."""
        return any(self._language_rank(language) < 2 * len(self._languages) for language in self.by_language)

    def _language_rank(self, language: str) -> int:
        """Preferred languages in order, each before its regional forms; then none, then any."""
        for place, preferred in enumerate(self._languages):
            if language == preferred:
                return 2 * place
            if preferred and language.startswith(f"{preferred}-"):
                return 2 * place + 1
        return 2 * len(self._languages) + bool(language)
