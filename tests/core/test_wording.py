"""A sentence has one source, and names options as its reader writes them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import veridical
from veridical.core.errors import InputError
from veridical.core.wording import option, typed
from veridical.grid.pool import check
from veridical.probes.options import ValidateOptions

ROOT = Path(veridical.__file__).parent
# Who runs other programs, or reads what was typed.
OTHERS = ("cli", "core/assets.py", "core/options.py", "core/settings.py", "core/wording.py")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("overlap=N", "--overlap N"),
        ('device="cpu"', "--device cpu"),
        ("dry_run=True", "--dry-run"),
        ("out", "--out"),
    ],
)
def test_an_option_in_both_tongues(said, words):
    assert option(said) == said
    with typed():
        assert option(said) == words
        assert option("methods", "--method") == "--method"
        with typed():
            pass
        assert option(said) == words
    assert option(said) == said


def test_the_same_mistake_told_to_both():
    with pytest.raises(InputError, match='is of a Ray cluster; give engine="ray" with it'):
        check("local", None, None, "auto")
    with typed(), pytest.raises(InputError, match="is of a Ray cluster; give --engine ray with it"):
        check("local", None, None, "auto")
    with pytest.raises(InputError, match=r"give seeds=range\(5\) or fresh="):
        ValidateOptions(out="x", seeds=(), fresh=())


def texts_in(path: Path) -> list[tuple[int, str]]:
    """The texts of a module that are told to somebody: no documentation, no help, no second words of `option`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent: set[int] = set()
    for node in ast.walk(tree):
        name = getattr(getattr(node, "func", None), "id", "")
        documentation = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if documentation or name in ("option", "Help", "Hidden"):
            silent |= {id(inner) for inner in ast.walk(node)}
    strings = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [(node.lineno, node.value) for node in strings if id(node) not in silent]


def test_no_sentence_outside_the_command_line_speaks_its_words():
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted(ROOT.rglob("*.py"))
        if not path.relative_to(ROOT).as_posix().startswith(OTHERS)
        for line, text in texts_in(path)
        if re.search(r"(^|[\s(`'])--[a-z]", text) and "--array=1-n" not in text and "--w:" not in text
    ]
    assert not wrong
