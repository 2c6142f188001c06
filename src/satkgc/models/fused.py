"""A mixture of trained models: each one's log-softmax over the entities, times a weight for the relation and direction.

The score of an entity e as an answer to a question q with the directed relation r is

    log-softmax over e of  Σ_i w_i(r) · x_i(q, e),    x_i(q, ·) = log-softmax of  scale_i · (expert i's scores).

Both softmaxes run over all entities of the graph, whichever are asked for: scores of candidates are columns of all
scores. Where expert i has nothing to say, its x_i is the mean of the others' there: it has no weight of its own, and
the others share what it had in equal parts. So the score stays linear in the weights, and their fit convex.

With `novelty`, a number b(r) is added to the sum of an entity about which an expert that knows the question has nothing
to say (calibrated stacking, Chao et al., 2016).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from satkgc.arrays import Bool, Int32
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.models.mixture import Mixture, parts_of_sum
from satkgc.models.model import Metrics, Model, ModelConfig, NewEntityText, Questions
from satkgc.models.vector_model import VectorModel
from satkgc.settings import Settings

QUESTIONS = 64  # scored at a time, at most
SCORES = 1 << 24  # of one expert that are held at once, at most
REMEMBERED = 32  # questions at once whose log-shares are remembered
FUSION, VECTORS = "fusion.json", "vectors.safetensors"


class FusedConfig(ModelConfig):
    """Settings of the mixture; its experts have their own, under `experts`."""

    kind: Literal["fused"] = "fused"
    held_back: float = Field(default=0.0, ge=0, lt=1)
    """Share of the validation triples that the fit of the weights leaves out; validation is then measured on these."""
    novelty: bool = False
    """Fit for each relation and direction how much more often an entity that an expert does not know is the answer than
    the others think: for graphs whose held-out triples are about new entities."""


class FusedModel(Model):
    """Trained models, and how much each is to be believed. It is fitted on validation triples, not trained."""

    Config = FusedConfig

    def __init__(
        self,
        kg: KnowledgeGraph,
        config: Settings,
        experts: Mapping[str, Model],
        vectors: Mapping[str, Tensor] | None = None,
        mixture: Mixture | None = None,
    ) -> None:
        """Entity vectors of experts that have such are encoded here, unless they are given."""
        super().__init__(kg, config)
        self.names = tuple(experts)
        self.experts = nn.ModuleList(experts.values())
        self._mixture = mixture or Mixture.even(self.names, kg.num_relations)
        self.reads_text = any(expert.reads_text for expert in experts.values())
        self.reads_facts = any(expert.reads_facts for expert in experts.values())
        self._memory: dict[tuple[int, int, NewEntityText | None], Tensor] = {}  # log-shares (n, E), oldest first
        self._knows = [expert.knows_entities() for expert in experts.values()]
        everyone = np.arange(kg.num_entities, dtype=np.int32)
        for i, (name, expert) in enumerate(experts.items()):
            if isinstance(expert, VectorModel):
                own = None if vectors is None else vectors[name]
                own = torch.from_numpy(expert.encode_entities(everyone, progress=True)) if own is None else own
                self.register_buffer(f"vectors{i}", own.to(expert.device), persistent=False)
        self.eval()

    @property
    def mixture(self) -> Mixture:
        """The weights."""
        return self._mixture

    @mixture.setter
    def mixture(self, mixture: Mixture) -> None:
        self._mixture = mixture
        self._memory.clear()

    def expert(self, name: str) -> Model:
        """One of them."""
        expert = self.experts[self.names.index(name)]
        assert isinstance(expert, Model)
        return expert

    def loss(self, batch: Any) -> tuple[Tensor, Metrics]:
        """There is none."""
        raise SatkgcError("a fused model is not trained", remedy="train its experts, then `satkgc fuse`")

    def knows_questions(self, questions: Questions) -> Bool:
        """Those of any expert."""
        return np.any([expert.knows_questions(questions) for expert in self._models()], axis=0)

    def knows_entities(self) -> Bool:
        """Those of any expert."""
        return np.any(self._knows, axis=0)

    def check_question(self, entity: int, relation: int) -> None:
        """One expert must know both."""
        refusals = []
        for expert in self._models():
            try:
                expert.check_question(entity, relation)
            except SatkgcError as error:
                refusals.append(error)
        if len(refusals) == len(self.names):
            raise refusals[0]

    @torch.inference_mode()
    def score(self, questions: Questions, candidates: Int32 | None = None) -> Tensor:
        """Logarithms of the mixture's shares of all entities, float32."""
        parts = []
        for rows in self._blocks(questions):
            own = None if candidates is None else candidates[rows]
            parts.append(self._score(questions.select(rows), own))
        width = self.kg.num_entities if candidates is None else candidates.shape[1]
        return torch.cat(parts) if parts else torch.empty(0, width)

    @torch.inference_mode()
    def score_held_out(self, questions: Questions, answers: Int32) -> Tensor:
        """The mixture of what each expert says with the answers held out; the weights are as they are."""
        parts, none = [], np.empty(0, np.int32)
        for rows in self._blocks(questions):
            some = questions.select(rows)
            shares = [self.log_shares_of(i, some, none, answers[rows]) for i in range(len(self.names))]
            total = self.mixture.mix(torch.stack(shares), some.relations, self.kg.num_entities)  # (q, E)
            parts.append(total - total.logsumexp(1, keepdim=True))
        return torch.cat(parts) if parts else torch.empty(0, self.kg.num_entities)

    @torch.inference_mode()
    def contributions(self, questions: Questions, candidates: Int32) -> Tensor:
        """What each expert adds to the sum that scores candidates; NaN where it has nothing to say.  # (n, Q, K)"""
        parts = [self._contributions(questions.select(rows), candidates[rows]) for rows in self._blocks(questions)]
        return torch.cat(parts, 1) if parts else torch.empty(len(self.names), *candidates.shape)

    def log_shares(self, questions: Questions, new: Int32 | None = None) -> Tensor:
        """x: each expert's log-softmax over the graph's entities, -inf where it has nothing to say.  # (n, Q, E + m)

        Columns beyond E are the entities `new` (m,), of the questions' own texts. Not for many questions at once. What
        few questions get is remembered: a person's question is searched, explained and asked about more than once.
        """
        if len(questions) > REMEMBERED or (new is not None and len(new)):
            return self._log_shares(questions, np.empty(0, np.int32) if new is None else new)
        size = self.kg.num_entities
        keys = [
            (entity, directed, questions.new[entity - size] if entity >= size else None)
            for entity, directed in zip(questions.entities.tolist(), questions.relations.tolist(), strict=True)
        ]
        missing = [row for row, key in enumerate(keys) if key not in self._memory]
        rows = {key: self._memory[key] for key in keys if key in self._memory}
        if missing:
            computed = self._log_shares(questions.select(missing), np.empty(0, np.int32))
            rows |= {keys[row]: computed[:, i].clone() for i, row in enumerate(missing)}
        self._memory |= rows
        while len(self._memory) > max(REMEMBERED, SCORES // (len(self.names) * size)):
            del self._memory[next(iter(self._memory))]
        return torch.stack([rows[key] for key in keys], 1)

    def _log_shares(self, questions: Questions, new: Int32) -> Tensor:
        return torch.stack([self.log_shares_of(i, questions, new) for i in range(len(self.names))])

    @torch.inference_mode()
    def log_shares_of(self, i: int, questions: Questions, new: Int32, held_out: Int32 | None = None) -> Tensor:
        """Those of the i-th expert; answers (Q,) may be held out.  # (Q, E + m)"""
        expert = self.expert(self.names[i])
        shares = torch.full((len(questions), self.kg.num_entities + len(new)), -torch.inf, device=self.device)
        rows = np.flatnonzero(expert.knows_questions(questions))
        if not len(rows):
            return shares
        if held_out is None:
            scores = self._expert_scores(i, expert, questions.select(rows), new)  # (q, E + m)
        else:
            scores = self._held_out_scores(i, expert, questions.select(rows), held_out[rows])  # (q, E)
        scores = scores.to(self.device)
        known = np.concatenate([self._knows[i], self._reads(expert, questions, new)])
        scores[:, torch.from_numpy(~known).to(self.device)] = -torch.inf
        scores *= float(self.mixture.scales[i])
        shares[torch.from_numpy(rows).to(self.device)] = scores - scores[:, : self.kg.num_entities].logsumexp(
            1, keepdim=True
        )
        return shares

    @torch.inference_mode()
    def expert_scores(self, questions: Questions, candidates: Int32) -> Tensor:
        """The experts' own scores of one candidate for each question, NaN where they have nothing to say.  # (Q, n)"""
        result = torch.full((len(questions), len(self.names)), torch.nan)
        for rows in self._blocks(questions):
            some, own = questions.select(rows), candidates[rows]
            new = np.unique(own[own >= self.kg.num_entities]).astype(np.int32)
            place = np.where(own < self.kg.num_entities, own, self.kg.num_entities + np.searchsorted(new, own))
            for i, expert in enumerate(self._models()):
                knows = np.concatenate([self._knows[i], self._reads(expert, questions, new)])[place]
                asked = np.flatnonzero(knows & expert.knows_questions(some))
                if len(asked):
                    scores = self._expert_scores_of(i, expert, some.select(asked), own[asked])
                    result[torch.from_numpy(asked) + rows.start, i] = scores.float().cpu()
        return result

    def weights(self, relations: Int32) -> Tensor:
        """Of directed relations.  # (Q,) → (n, Q)"""
        return torch.from_numpy(self.mixture.weights[relations].T.astype(np.float32)).to(self.device)

    def entity_vectors(self) -> tuple[VectorModel, Tensor] | None:
        """The first expert that has vectors, and those of all entities (E, dim)."""
        for i, expert in enumerate(self._models()):
            if isinstance(expert, VectorModel):
                return expert, self._vectors(i)
        return None

    def alone(self, name: str) -> ExpertAlone:
        """One expert, to be evaluated with the vectors that are here already."""
        return ExpertAlone(self, self.names.index(name))

    @torch.no_grad()
    def grow(self, kg: KnowledgeGraph) -> Self:
        """Of grown experts; only what reads otherwise now is encoded. A new relation has the general weights."""
        experts = {name: self.expert(name).grow(kg) for name in self.names}
        vectors = {}
        for i, (name, expert) in enumerate(experts.items()):
            if isinstance(expert, VectorModel):
                vectors[name] = own = self._vectors(i).new_empty(kg.num_entities, expert.dim)
                own[: self.kg.num_entities] = self._vectors(i)
                changed = expert.changed_entities(self.expert(name))  # type: ignore[arg-type]
                read = expert.encode_entities(changed, progress=True)
                own[torch.from_numpy(changed).long()] = torch.from_numpy(read).to(own.device)
        mixture = Mixture.from_json(self.mixture.to_json(self.kg), kg)
        return type(self)(kg, self.config, experts, vectors, mixture).to(self.device)

    def save(self, folder: Path) -> None:
        """The weights as JSON and the entity vectors; the experts are runs of their own."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        vectors = {name: self._vectors(i).cpu().contiguous() for i, name in enumerate(self.names) if self._has(i)}
        save_file(vectors, folder / VECTORS)
        content = json.dumps(self.mixture.to_json(self.kg), indent=1, ensure_ascii=False)
        (folder / FUSION).write_text(content + "\n", encoding="utf-8")

    @classmethod
    def load(
        cls,
        folder: Path,
        kg: KnowledgeGraph,
        config: Settings,
        device: torch.device | str = "cpu",
        experts: Mapping[str, Model] | None = None,
    ) -> Self:
        """Open what `save` wrote, over experts that are open already."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            mixture = Mixture.from_json(json.loads((folder / FUSION).read_text(encoding="utf-8")), kg)
            vectors = load_file(folder / VECTORS)
            opened = {name: (experts or {})[name] for name in mixture.experts}
            for name, own in vectors.items():
                if own.shape != (kg.num_entities, opened[name].dim):
                    what = f"the vectors of {name} have the shape {tuple(own.shape)}, as earlier versions made them"
                    runs = " ".join(str(folder.parent / "experts" / expert) for expert in mixture.experts)
                    raise SatkgcError(
                        what, where=folder / VECTORS, remedy=f"`satkgc fuse {runs} --out NEW` fuses them again"
                    )
            model = cls(kg, config, opened, vectors, mixture)
        except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise SatkgcError(
                f"cannot open the mixture: {reason}", where=folder, remedy="copy the run again"
            ) from error
        return model.to(device).eval()

    def _models(self) -> Iterator[Model]:
        for expert in self.experts:
            assert isinstance(expert, Model)
            yield expert

    def _has(self, i: int) -> bool:
        return isinstance(self.experts[i], VectorModel)

    def _vectors(self, i: int) -> Tensor:
        return self.get_buffer(f"vectors{i}")

    def _blocks(self, questions: Questions) -> Iterator[slice]:
        step = max(1, min(QUESTIONS, SCORES // self.kg.num_entities))
        return (slice(start, start + step) for start in range(0, len(questions), step))

    def _expert_scores(self, i: int, expert: Model, questions: Questions, new: Int32) -> Tensor:
        """Raw scores, in memory of their own.  # (Q, E + m)"""
        if not isinstance(expert, VectorModel):
            if self._reads(expert, questions, new).any():
                everyone = np.concatenate([np.arange(self.kg.num_entities, dtype=np.int32), new])
                return expert.score(questions, np.tile(everyone, (len(questions), 1))).float()
            scores = expert.score(questions).float()
            return torch.cat([scores, scores.new_full((len(questions), len(new)), -torch.inf)], 1)
        vectors = self._vectors(i)
        if len(new):
            late = torch.from_numpy(expert.encode_entities(new, questions.new)).to(vectors.device)
            vectors = torch.cat([vectors, late])
        scores = torch.from_numpy(expert.encode_questions(questions)).to(vectors.device) @ vectors.T
        return expert.bar_own(scores, questions)

    def _expert_scores_of(self, i: int, expert: Model, questions: Questions, candidates: Int32) -> Tensor:
        """Raw scores of one candidate for each question.  # (Q,)"""
        if not isinstance(expert, VectorModel):
            return expert.score(questions, candidates[:, None])[:, 0]
        vectors, size = self._vectors(i), self.kg.num_entities
        own = vectors[torch.from_numpy(np.minimum(candidates, size - 1).astype(np.int64)).to(vectors.device)]
        if (new := candidates >= size).any():
            late = expert.encode_entities(candidates[new], questions.new)
            own[torch.from_numpy(np.flatnonzero(new)).to(own.device)] = torch.from_numpy(late).to(own.device)
        queries = torch.from_numpy(expert.encode_questions(questions)).to(own.device)
        return expert.bar_own((queries * own).sum(1, keepdim=True), questions, candidates[:, None])[:, 0]

    def _reads(self, expert: Model, questions: Questions, new: Int32) -> Bool:
        """Of which new entities, as answers, an expert has something to say.  # (m,)"""
        facts = [bool(questions.new[entity - self.kg.num_entities].facts) for entity in new]
        return np.full(len(new), expert.reads_text) | (np.array(facts, bool) & expert.reads_facts)

    def _held_out_scores(self, i: int, expert: Model, questions: Questions, answers: Int32) -> Tensor:
        """Likewise of all entities, the triples of questions and answers being held out.  # (Q, E)"""
        if not isinstance(expert, VectorModel):
            return expert.score_held_out(questions, answers).float().clone()
        queries, own = expert.encode_held_out(questions, answers)
        scores = torch.from_numpy(queries).to(self._vectors(i).device) @ self._vectors(i).T
        if own is not None:
            rows = torch.arange(len(answers)), torch.from_numpy(answers.astype(np.int64))
            scores[rows] = torch.from_numpy((queries * own).sum(1)).to(scores.device)
        return expert.bar_own(scores, questions)

    def _score(self, questions: Questions, candidates: Int32 | None) -> Tensor:
        size = self.kg.num_entities
        new, places = self._places(candidates)
        total = self.mixture.mix(self.log_shares(questions, new), questions.relations, size)  # (Q, E + m)
        total -= total[:, :size].logsumexp(1, keepdim=True)
        return total if places is None else total.gather(1, places)

    def _contributions(self, questions: Questions, candidates: Int32) -> Tensor:
        new, places = self._places(candidates)
        assert places is not None
        shares = self.log_shares(questions, new)
        shares = shares.gather(2, places[None].expand(len(self.names), -1, -1))  # (n, Q, K)
        return parts_of_sum(shares, self.weights(questions.relations))

    def _places(self, candidates: Int32 | None) -> tuple[Int32 | None, Tensor | None]:
        """New entities among candidates, and the columns of all in scores that have these at their end."""
        if candidates is None:
            return None, None
        size = self.kg.num_entities
        new = np.unique(candidates[candidates >= size]).astype(np.int32)
        places = np.where(candidates >= size, size + np.searchsorted(new, candidates), candidates)
        return new, torch.from_numpy(places.astype(np.int64)).to(self.device)


@dataclass(frozen=True, eq=False)
class ExpertAlone:
    """What evaluation ranks of one expert: where it has nothing to say, all entities tie."""

    model: FusedModel
    place: int

    def score(self, questions: Questions) -> Tensor:
        """Its log-softmax.  # (Q, E)"""
        return self.model.log_shares_of(self.place, questions, np.empty(0, np.int32))
