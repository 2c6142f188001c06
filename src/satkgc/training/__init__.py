"""The loop, recipes, checkpoints, ranks of processes: a graph becomes a run folder."""

from satkgc.training.config import Config, TrainingConfig
from satkgc.training.recipes import make_config, recipe_names
from satkgc.training.run import Run
from satkgc.training.trainer import train

__all__ = ["Config", "Run", "TrainingConfig", "make_config", "recipe_names", "train"]
