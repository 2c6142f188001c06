"""`satkgc train`, and what every command has."""

from __future__ import annotations

import pytest
import typer
from commands import refusal, run

import satkgc
from satkgc.cli import app
from satkgc.cli.train import HELP
from satkgc.completion import INDEXES
from satkgc.errors import SatkgcError
from satkgc.export import FORMATS
from satkgc.training import default_recipe, recipe_names

pytest_plugins = ["world"]
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def option(command: str, name: str) -> typer.core.TyperOption:
    return next(parameter for parameter in COMMANDS[command].params if parameter.name == name)


def test_the_version() -> None:
    assert run("--version").stdout == f"satkgc {satkgc.__version__}\n"


def test_a_length_in_epochs() -> None:
    shown = run("train", "wordnet-sample", "--recipe", "simkgc", "--epochs", "2", "--show").stdout
    assert "training.epochs = 2.0\n" in shown
    assert "# 102 steps on" in shown
    with pytest.raises(SatkgcError, match="--steps and --epochs at once; give one of them"):
        run("train", "wordnet-sample", "--epochs", "2", "--steps", "5", "--show")


def test_help_names_every_recipe_and_the_default() -> None:
    assert all(name in HELP for name in recipe_names())
    assert option("train", "recipe").show_default == "quick, on a GPU satkgc-adjusted"
    assert default_recipe("cpu") == "quick"


def test_help_names_what_the_registries_have() -> None:
    assert all(name in option("prepare", "index").help for name in INDEXES)
    assert all(name in option("export", "format").help for name in FORMATS)


@pytest.mark.parametrize("command", ["complete", "evidence", "propose", "prepare", "serve", "export", "evaluate"])
def test_the_device_is_said_in_one_way(command: str) -> None:
    device = option(command, "device")
    assert (device.opts, device.default) == (["--device"], "auto")
    assert "auto: the GPU if there is one" in device.help


def test_a_name_that_a_registry_does_not_have_is_refused_in_one_line(prepared, tmp_path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    assert "faiss" in refusal(monkeypatch, capsys, "prepare", prepared, "--index", "tree")
    assert "onnx" in refusal(monkeypatch, capsys, "export", prepared, tmp_path / "out", "--format", "pickle")
