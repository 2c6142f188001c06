"""Names and descriptions in RDF: which predicates give them, and which of several to take."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence

_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
# The best first, where one language offers several.
NAMES = (
    f"{_RDFS}label", f"{_SKOS}prefLabel", "http://schema.org/name", "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
)  # fmt: skip
DESCRIPTIONS = (
    "http://schema.org/description", "https://schema.org/description", f"{_RDFS}comment",
    "http://purl.org/dc/terms/description", f"{_SKOS}definition",
)  # fmt: skip


class BestTexts:
    """The best text so far of each node: by language, then by predicate, then the first that was met."""

    def __init__(self, predicates: Sequence[str], languages: Sequence[str]) -> None:
        self.predicates = {predicate: rank for rank, predicate in enumerate(predicates)}
        self._languages = [language.lower() for language in languages]
        self.met: Counter[str] = Counter()  # texts by language, in lower case
        self._texts: list[str] = []  # by node
        self._ranks = array("i")

    def offer(self, node: int, predicate: str, text: str, language: str | None) -> None:
        """Take the text if it is better than what the node has."""
        text = " ".join(text.split())
        if not text:
            return
        missing = node + 1 - len(self._texts)
        if missing > 0:
            self._texts += [""] * missing
            self._ranks.extend([2**31 - 1] * missing)
        language = (language or "").lower()
        self.met[language] += 1
        rank = self._language_rank(language) * len(self.predicates) + self.predicates[predicate]
        if rank < self._ranks[node]:
            self._texts[node], self._ranks[node] = text, rank

    def of(self, node: int) -> str:
        """The text of a node, or an empty string."""
        return self._texts[node] if node < len(self._texts) else ""

    def none_wanted(self) -> bool:
        """Whether no text so far is in a wanted language."""
        return all(self._language_rank(language) >= 2 * len(self._languages) for language in self.met)

    def _language_rank(self, language: str) -> int:
        """Wanted languages in order, each before its regional forms; then none, then any."""
        for place, wanted in enumerate(self._languages):
            if language == wanted:
                return 2 * place
            if wanted and language.startswith(f"{wanted}-"):
                return 2 * place + 1
        return 2 * len(self._languages) + bool(language)
