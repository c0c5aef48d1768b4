"""Names of models with the options behind them, `bilstm:hidden=32`, and how specs of runs spell them."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from veridical.core.errors import InputError
from veridical.core.readable import insist_on_characters, shown
from veridical.core.registry import resolve
from veridical.core.spec import Spec, read_place
from veridical.core.values import read

HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
ENCODERS = {"minilm": "minilm", "mpnet": "mpnet", "smollm2": "smollm2"}  # names of embedded models -> their asset
OPTIONS = ("layers", "head")  # of every model but the BiLSTM
PATIENCE = 5.0  # seconds in which the hub has to answer whether it has a model
WIDTH = 128  # of the BiLSTM and of its attention: Recursive ROAR's, for everything but bAbI


def _read(spec: str) -> tuple[str, dict[str, str]]:
    typed = read_place(spec)
    return typed.name, dict(typed.options)


def recorded(spec: str) -> str:
    """A model as specs of runs have it, where an attention of the usual width goes without saying.

    Runs of before had no other: what they recorded as `bilstm:hidden=32` has an attention of 128.
    """
    name, given = _read(spec)
    if name != "bilstm" or not {"hidden", "attention"} & set(given):
        return spec
    attention = given.pop("attention", given.get("hidden", str(WIDTH)))
    if not _usual(attention):
        given["attention"] = attention
    return Spec(name, given).write()


def from_record(spec: str) -> str:
    """The model that a run recorded so."""
    name, given = _read(spec)
    return f"{spec}:attention={WIDTH}" if name == "bilstm" and "attention" not in given else spec


def same_record(one: str, other: str) -> bool:
    """Whether two records are of one model: a width of 128 may be said or not."""
    (name, given), (other_name, other_given) = _read(one), _read(other)
    for held in (given, other_given):
        if name == "bilstm" and _usual(held.get("hidden", "")):
            del held["hidden"]
    return (name, given) == (other_name, other_given)


def _usual(width: str) -> bool:
    return bool(width) and read(width, int | None, "a width of model 'bilstm'") == WIDTH


# -- whether there is such a model --------------------------------------------------------------------------


def insist_on_models(specs: Any) -> None:
    """Refuse names of models of which there is none; objects are not looked at."""
    for spec in specs if isinstance(specs, (list, tuple)) else [specs]:
        if isinstance(spec, (str, Path)):
            insist_on_model(str(spec))
        elif not hasattr(spec, "model"):
            raise InputError(f"{shown(spec)} is no model; name a folder or a hub id, or give what `load` returns.")


def insist_on_trained(spec: str) -> None:
    """The same of what is to be trained: also a BiLSTM, which comes from nothing."""
    typed = read_place(spec)
    if typed.name != "bilstm":
        insist_on_model(spec, start=True)
    elif typed.options:
        from veridical.model import bilstm

        resolve(bilstm.build, typed.options, "model 'bilstm'")


def insist_on_model(spec: str, *, start: bool = False) -> str:
    """Refuse the name of a model of which there is none, here or on the hub, and options that it has not.

    Returns its folder, its name on the hub, or that of an embedded encoder. An embedded name means the embedded model
    where a classifier is made of it (`start`: trained, prompted). Elsewhere a model in a folder of that name is meant
    just as likely (`train --model mpnet --out mpnet`, then `audit mpnet`), and taking either would be a guess.
    """
    insist_on_characters(spec, "The name of the model")
    if not spec.strip():
        raise InputError(f"The name of the model is {spec!r}; name a folder (. for this one) or a hub id.")
    typed = read_place(spec)
    unknown = sorted(set(typed.options) - set(OPTIONS))
    if unknown:
        raise InputError(f"The model {shown(spec)} has no option {unknown[0]!r}; there are {' and '.join(OPTIONS)}.")
    if "layers" in typed.options:
        read(typed.options["layers"], int, f"layers of {shown(typed.name)}")
    if typed.name == "bilstm":
        raise InputError("'bilstm' is built from training texts; train one first, then name its run folder.")
    if typed.name not in ENCODERS:
        return _folder(typed.name)
    if not start and any(os.path.exists(Path(typed.name, *inside)) for inside in (["config.json"], ["model"])):
        raise InputError(
            f"{typed.name!r} is an embedded model, and there is a folder of that name here; write "
            f"{f'./{typed.name}'!r} for what is in the folder, or work elsewhere for the embedded one."
        )
    return typed.name


def _folder(source: str) -> str:
    path = Path(source)
    if os.path.exists(path / "model" / "config.json"):  # a run folder
        return str(path / "model")
    if os.path.isdir(path):
        if not os.path.exists(path / "config.json") and os.path.exists(path / "adapter_config.json"):
            raise InputError(
                f"The folder {source!r} holds an adapter, not a model; fold it into its model with peft "
                "(model.merge_and_unload().save_pretrained(...)) and name that folder."
            )
        if not os.path.exists(path / "config.json"):
            raise InputError(
                f"The folder {source!r} holds no model (no config.json, nor model/config.json as in a finished run); "
                "name a run folder whose training has ended and did not fail."
            )
        return source
    if os.path.exists(path):
        raise InputError(f"{source!r} is a file; name the folder of the model, with its config.json and tokenizer.")
    if not HUB_ID.fullmatch(source) or len(source) > 96:  # the hub has no longer ones
        raise InputError(
            f"There is no folder {shown(source)}, and it is not the name of a model on the hub; check the path."
        )
    return _on_hub(source)


def _on_hub(source: str) -> str:
    """The name, if the hub may have it, or the copy that was downloaded, if the hub does not answer: asked once here,
    because the hub's own client tries for half a minute."""
    from huggingface_hub import constants, get_session, hf_hub_url, try_to_load_from_cache

    copy = try_to_load_from_cache(source, "config.json")
    if constants.HF_HUB_OFFLINE:
        if isinstance(copy, str):
            return source
        raise _nowhere(source, "HF_HUB_OFFLINE is set")
    try:
        answer = get_session().head(hf_hub_url(source, "config.json"), timeout=PATIENCE, follow_redirects=True)
    except Exception as problem:  # of the HTTP library that the client is built on; nothing of ours runs in there
        if isinstance(copy, str):
            return str(Path(copy).parent)
        reason = next(iter(str(problem).splitlines()), type(problem).__name__)
        raise _nowhere(source, f"it does not answer ({reason})") from problem
    if answer.status_code in (401, 403, 404) and not isinstance(copy, str) and not _has_token():
        raise _nowhere(source, "it has none that anybody may read")
    return source


def _has_token() -> bool:
    from huggingface_hub import get_token

    return get_token() is not None


def _nowhere(source: str, why: str) -> InputError:
    near = get_close_matches(source, [*ENCODERS, "bilstm"], n=1, cutoff=0.7)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InputError(
        f"There is no folder {source!r}, and no model of that name could be had from the hub: {why}; "
        f"check the path.{hint}"
    )
