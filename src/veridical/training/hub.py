"""A run on the hub: its model in safetensors, tokenizer, configuration and card, in one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from veridical.core.errors import BreakdownError, InputError
from veridical.training.card import CARD, model_card
from veridical.training.train import Run

# What a model and its tokenizer need. Nothing that is run when it is loaded, and nothing else that lies there.
KINDS = (".safetensors", ".json", ".txt", ".model", ".jinja")


def push(
    run: Run,
    repo_id: str,
    *,
    audit: str | Path | None = None,
    private: bool | None = None,
    license: str | None = None,
    language: str | None = None,
    revision: str | None = None,
    message: str = "Upload a model trained with Veridical",
    token: str | None = None,
    api: Any = None,
) -> str:
    """Upload a run's model; returns its address. `api` is a `huggingface_hub.HfApi`, by default one with the token."""
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(repo_id)
    except ValueError as problem:
        raise InputError(f"{repo_id!r} is not a name that the hub takes; write it like owner/name.") from problem
    # The audit's page stays here: it shows texts of the data, which may not be public.
    card = model_card(run, audit, name=repo_id, license=license, language=language, links=False)
    files = {path.name: path for path in sorted((run.folder / "model").iterdir()) if path.suffix in KINDS}
    if not any(name.endswith(".safetensors") for name in files):
        raise InputError(f"{run.folder / 'model'} holds no safetensors file; train the run to its end first.")
    adds = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=path) for name, path in files.items()]
    adds.append(CommitOperationAdd(path_in_repo=CARD, path_or_fileobj=card.encode()))
    api = api or HfApi(token=token)
    try:
        address = api.create_repo(repo_id, private=private, repo_type="model", exist_ok=True)
        api.create_commit(repo_id, adds, commit_message=message, repo_type="model", revision=revision)
    except Exception as problem:  # of the hub's client and the HTTP library under it; nothing of ours runs in there
        reason = next(iter(str(problem).strip().splitlines()), type(problem).__name__)
        raise BreakdownError(
            f"{repo_id} could not be uploaded ({reason.rstrip('.')}); log in with `hf auth login`, or set HF_TOKEN, "
            "and try again."
        ) from problem
    return str(address)
