"""What every refusal has in common: exit code 2, one sentence on standard error, nothing on standard output."""

from __future__ import annotations

from collections.abc import Sequence

from typer.testing import CliRunner

from veridical.cli.app import app


def refusal(words: Sequence[str], *, input: bytes | None = None) -> str:
    """The one sentence with which a command ends."""
    result = CliRunner().invoke(app, list(words), prog_name="veridical", input=input)
    assert "Traceback" not in result.output
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (sentence,) = result.stderr.strip().splitlines()
    return sentence
