"""Every command line that README and docs show is one that the program understands."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from satkgc.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def shown() -> list[tuple[str, str]]:
    """(page, command line) of each line in a shell block that calls satkgc."""
    found = []
    for page in PAGES:
        for block in re.findall(r"```(?:sh|bash|console)\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
            for line in block.replace("\\\n", " ").splitlines():
                words = re.match(r"\s*(?:\$ )?(?:\S*/)?satkgc (.*)", line)
                if words:
                    found.append((page.name, words[1]))
    return found


def parse(arguments: list[str]) -> None:
    """Find the command and let it take its arguments, without running it."""
    command, name = typer.main.get_command(app), "satkgc"
    while hasattr(command, "commands"):
        name, arguments = arguments[0], arguments[1:]
        command = command.commands[name]
    command.make_context(name, arguments)


def test_the_pages_show_commands() -> None:
    assert len(shown()) > 20


@pytest.mark.parametrize(("page", "line"), shown())
def test_a_shown_command_is_understood(page: str, line: str) -> None:
    parse([word for word in shlex.split(line, comments=True) if word != "…"])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("propose runs/mine --n 5 --out new.tsv", "No such option:? '?--out"),
        ("train", "Missing parameter: kg"),
        ("kg paint x", "paint"),
    ],
)
def test_a_wrong_one_would_be_noticed(line: str, told: str) -> None:
    with pytest.raises(Exception, match=told):
        parse(shlex.split(line))
