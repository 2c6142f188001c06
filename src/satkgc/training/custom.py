"""A sampler or a loss of the user's own: made as the package's are, and known by its name when a run is resumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.models import MODELS, EncoderModelConfig, LossConfig, Model, TextModel, TextReader, load_tokenizer
from satkgc.processes import Processes
from satkgc.sampling import Needs, Sampler, SamplingConfig, SamplingVectors, make_sampler
from satkgc.text import Texts
from satkgc.training.config import Config
from satkgc.training.run_folder import RunFolder

MakeSampler = Callable[[KnowledgeGraph, SamplingConfig, int, Needs, SamplingVectors | None], Sampler]
MakeLoss = Callable[[LossConfig, KnowledgeGraph], nn.Module]


@dataclass(frozen=True)
class Custom:
    """What makes the sampler and the loss of a run; None: the package."""

    sampler: MakeSampler | None = None
    loss: MakeLoss | None = None

    def names(self) -> dict[str, str]:
        """Those that are not the package's, by their qualified names."""
        factories = {kind: factory for kind, factory in vars(self).items() if factory is not None}
        for kind, factory in factories.items():
            if not hasattr(factory, "__qualname__"):
                raise SatkgcError(f"{kind} is {factory!r}, which has no name", remedy="give a class or a function")
        return {kind: f"{factory.__module__}.{factory.__qualname__}" for kind, factory in factories.items()}

    def refuse_others(self, run: RunFolder) -> None:
        """A run goes on with what it was started with."""
        names = self.names()
        for kind in ("sampler", "loss"):
            before, now = run.about.get(kind), names.get(kind)
            if before == now:
                continue
            remedy = f"leave {kind} out, or choose another out"
            if before is not None:
                remedy = f"go on from Python: satkgc.train(…, {kind}={before.rsplit('.', 1)[-1]}, resume=True)"
            what = f"this run has the {kind} {before or 'of its recipe'}, not {now or 'that of its recipe'}"
            raise SatkgcError(what, where=run.folder, remedy=remedy)

    def make_model(self, kg: KnowledgeGraph, config: Config, processes: Processes) -> Model:
        """A fresh model of the kind that the recipe names; several processes share the tokenising of its texts."""
        kind, texts = MODELS[config.model.kind], dict[str, Any]()
        settings = config.model
        if processes.world > 1 and issubclass(kind, TextReader) and isinstance(settings, EncoderModelConfig):
            tokenizer = load_tokenizer(settings.encoder.backbone, settings.encoder)
            texts["texts"] = Texts(kg, tokenizer, settings.text, processes=processes)
        if self.loss is None:
            return kind(kg, config.model, **texts)
        if not issubclass(kind, TextModel):
            raise SatkgcError(f"a loss of one's own for model.kind {config.model.kind}", remedy="leave loss out")
        model = kind(kg, config.model, make_loss=self.loss, **texts)
        contrastive: Any = model.contrastive
        if not isinstance(contrastive, nn.Module):
            what = f"{self.names()['loss']} makes no module"
            raise SatkgcError(what, remedy="extend torch.nn.Module, or satkgc.models.ContrastiveLoss")
        return model

    def make_sampler(
        self, kg: KnowledgeGraph, config: SamplingConfig, seed: int, needs: Needs, vectors: SamplingVectors
    ) -> Sampler:
        """The sampler of a run."""
        sampler = (self.sampler or make_sampler)(kg, config, seed, needs, vectors)
        if not isinstance(sampler, Sampler):
            raise SatkgcError(f"{self.names()['sampler']} makes no sampler", remedy="extend satkgc.sampling.Sampler")
        return sampler
