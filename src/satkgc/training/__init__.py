"""The loop, recipes, checkpoints: a graph and a recipe become a run folder."""

from satkgc.training.config import Config, TrainingConfig
from satkgc.training.custom import Custom, MakeLoss, MakeSampler
from satkgc.training.fuse import fuse_or_stop
from satkgc.training.loop import Callback
from satkgc.training.mixture import fit_parts
from satkgc.training.recipe_files import OF_FUSED, recipe_names
from satkgc.training.recipes import default_recipe, make_config
from satkgc.training.run_folder import RunFolder, exclusive, model_sum
from satkgc.training.trainer import EXIT_CODES, train_or_stop

__all__ = [
    "EXIT_CODES",
    "OF_FUSED",
    "Callback",
    "Config",
    "Custom",
    "MakeLoss",
    "MakeSampler",
    "RunFolder",
    "TrainingConfig",
    "default_recipe",
    "exclusive",
    "fit_parts",
    "fuse_or_stop",
    "make_config",
    "model_sum",
    "recipe_names",
    "train_or_stop",
]
