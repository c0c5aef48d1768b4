"""`--with` before and after the verb, with any of them."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from veridical.cli.speech import PlainGroup, With
from veridical.core.errors import InputError

app = typer.Typer(cls=PlainGroup, add_completion=False, pretty_exceptions_enable=False)
inner = typer.Typer()
app.add_typer(inner, name="inner")


@app.callback()
def top(with_: With = None) -> None:
    if with_ == ["broken"]:
        raise InputError("broken cannot be imported; mend it.")
    typer.echo(f"with {with_}")


@app.command()
def verb(words: list[str] | None = None, loud: bool = False) -> None:
    typer.echo(f"verb {words} {loud}")


@inner.command()
def deep(loud: bool = False) -> None:
    typer.echo(f"deep {loud}")


@inner.command()
def other() -> None:
    """So that `deep` is a verb."""


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("--with a verb --loud", ["with ['a']", "verb None True"]),
        ("verb --with a --loud --with=b,c", ["with ['a', 'b,c']", "verb None True"]),
        ("inner deep --loud --with a", ["with ['a']", "deep True"]),
        ("verb --loud", ["with None", "verb None True"]),
    ],
)
def test_it_is_taken_from_wherever_it_stands(words, shown):
    done = CliRunner().invoke(app, words.split())
    assert (done.stdout.splitlines(), done.exit_code) == (shown, 0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [("verb --with", "--with needs a module"), ("verb --with broken", "broken cannot be imported")],
)
def test_a_mistake_is_a_sentence(words, sentence):
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 2
    assert sentence in done.stderr
