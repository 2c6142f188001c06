"""How the packages fit together: imports by a package's front, one name for one class, files of a readable length."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import satkgc

ROOT = Path(satkgc.__file__).parent
MODULES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def package_of(path: Path) -> str:
    """The package below satkgc, or the module that lies beside them."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> list[str]:
    """Every module of satkgc that a file imports from, wherever in the file."""
    names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return [name for name in names if name.startswith("satkgc.")]


def test_packages_import_each_other_by_their_fronts():
    deep = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, tree in MODULES.items()
        for name in imports(tree)
        if name.count(".") > 1 and name.split(".")[1] != package_of(path)
    ]
    assert deep == []


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for path, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_files_stay_readable():
    long = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: lines for name, lines in long.items() if lines > 400} == {}


def test_what_a_package_lists_is_there():
    for path, tree in MODULES.items():
        if path.name != "__init__.py":
            continue
        listed = [node for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"]
        if listed:
            name = ".".join(("satkgc", *path.relative_to(ROOT).parts[:-1]))
            module = __import__(name, fromlist=["_"])
            for member in ast.literal_eval(listed[0].value):
                assert hasattr(module, member), f"{name}.{member}"


def test_no_model_is_opened_with_code_of_its_own():
    """Left out, the setting makes transformers ask on the terminal."""
    opened: list[tuple[str, list[str]]] = []
    for path, tree in MODULES.items():
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
        opened += [
            (f"{path.name}: {name}", [ast.unparse(keyword) for keyword in call.keywords])
            for call in calls
            if (name := ast.unparse(call.func)).endswith((".from_pretrained", "SentenceTransformer"))
        ]
    assert len(opened) == 4
    assert [name for name, given in opened if not {"trust_remote_code=False", "**SAFE"} & set(given)] == []
