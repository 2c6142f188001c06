"""What is installed without the repository: the wheel has every file that the code reads, and the sdist builds it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MEBIBYTE = 2**20


def build(target: str, source: Path, folder: Path) -> Path:
    """Build it offline, by the backend that pyproject.toml names."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    [archive] = folder.iterdir()
    return archive


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    listing = subprocess.run(["git", "ls-files", "-z", "src"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("not a checkout of git")
    tracked = {file.removeprefix("src/") for file in listing.stdout.split("\0") if (ROOT / file).is_file()}
    data = {file for file in tracked if not file.endswith(".py")}
    assert {Path(file).suffix for file in data} >= {".toml", ".tsv", ".js", ".html", ".css", ".typed", ".txt"}
    assert tracked <= names(wheel), "a file of the package is left out"
    others = {name.split("/")[0] for name in names(wheel)} - {"satkgc"}
    assert len(others) == 1, "besides the package, only its metadata"
    [metadata] = others
    licences = {file for file in tracked if "LICENSE" in file}
    assert licences, "that of the bundled sample"
    beside = {"LICENSE", *(f"src/{file}" for file in licences)}
    assert {f"{metadata}/licenses/{file}" for file in beside} <= names(wheel)


def test_the_sdist_is_small_and_builds_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    assert sdist.stat().st_size < 2 * MEBIBYTE
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    [source] = (tmp_path / "source").iterdir()
    assert {path.name for path in source.iterdir()} >= {"LICENSE", "README.md", "CHANGELOG.md", "constraints.txt"}
    assert not {"tests", "results", "docs"} & {path.name for path in source.iterdir()}
    again = build("wheel", source, tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        assert {part.filename: part.CRC for part in first.infolist()} == {
            part.filename: part.CRC for part in second.infolist()
        }
