"""`veridical card`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from veridical.core.errors import InputError
from veridical.core.options import Help
from veridical.core.readable import shown_path

RunFolder = Annotated[str, Help("A run's folder, as `veridical train` wrote it.", "RUN", argument=True)]
AuditFolder = Annotated[str | None, Help("A folder of `veridical audit`: its verdict is told.", "DIR")]
Name = Annotated[str | None, Help("What the model is called.", "NAME", default="by its model and data")]
License = Annotated[str | None, Help("Under which it may be used, as the hub spells it: apache-2.0.", "NAME")]
Language = Annotated[str | None, Help("Of its texts, as a code: en.", "CODE")]
Show = Annotated[bool, Help("Print the card and write nothing.", option="--print")]
Push = Annotated[str | None, Help("Upload model, tokenizer and card to the hub as this.", "NAME")]
Private = Annotated[bool, Help("Where it is uploaded anew, only you see it.")]


def card(
    run: RunFolder,
    audit: AuditFolder = None,
    name: Name = None,
    license: License = None,
    language: Language = None,
    show: Show = False,
    push: Push = None,
    private: Private = False,
) -> None:
    """Write a run's model card: scores with intervals, calibration, data, and which explanations to believe.

    It becomes README.md in the run's folder, with the metadata that the Hugging Face hub reads.

    Example: veridical card runs/mine --audit audits/mine --license apache-2.0 --language en

    With the model: veridical card runs/mine --audit audits/mine --push me/my-model --private
    """
    if push is not None and (show or name is not None):
        raise InputError("--push names the model and uploads it; leave out --name and --print, or do without --push.")
    if private and push is None:
        raise InputError("--private goes with --push; say what to upload the model as.")
    if not os.path.exists(os.path.join(run, "scores.json")):  # a look that needs no import
        raise InputError(f"{shown_path(run)} is not a finished run (no scores.json); name a folder that train wrote.")
    from veridical.training.card import model_card, write_card
    from veridical.training.hub import push as upload
    from veridical.training.train import read_run

    found = read_run(run)
    text = model_card(found, audit, name=push or name, license=license, language=language)
    if show:
        typer.echo(text, nl=False)
        return
    typer.echo(str(write_card(found, text)))
    if push is not None:
        kept = private or None  # what is there stays as it is
        typer.echo(upload(found, push, audit=audit, private=kept, license=license, language=language))
