"""A causal language model with a prompt as a classifier of texts: its head is the rows of the language model's own head
for the labels' tokens, centred, so that every logit is that label's lead over the mean of all of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch

from veridical.core.errors import Caution, InputError
from veridical.model.classifier import Classifier
from veridical.model.encode import token_limit
from veridical.model.pretrained import read_language_model, refusing
from veridical.model.template import PLAIN, Template, as_chat, boundary, template_of, with_template

SAME = 0.99  # share of sample texts below which a prompt's boundary is told of
EXACT = 1e-4  # how far the classifier's logits may be from the language model's, of the largest


def prompted(
    where: str, model: Any, tokenizer: Any, spec: str, prompt: str, labels: Mapping[str, str], *, chat: bool
) -> Classifier:
    """The sequence classifier `model`, with a head of its language model's rows for the labels and a tokenizer that
    holds the prompt."""
    score = getattr(model, "score", None)
    if not isinstance(score, torch.nn.Linear) or score.bias is not None:
        raise InputError(
            f"{spec!r} ({model.config.model_type}) is no causal language model whose classifier reads the last token, "
            "so a prompt cannot make a classifier of it; take a Llama, Qwen, GPT-2 or the like."
        )
    written = as_chat(tokenizer, prompt) if chat else prompt
    template = template_of(tokenizer, written, labels)
    if model.config.pad_token_id in template.suffix[-1:]:
        raise InputError(
            f"The prompt of {spec!r} ends in the token that pads texts, which its classifier passes over; let another "
            "word stand at the end."
        )
    limit, own = token_limit(model, tokenizer), len(template.prefix) + len(template.suffix)
    if own >= limit:
        raise InputError(
            f"The prompt has {own} tokens, and {spec!r} reads {limit}, which leaves no room for a text; shorten it."
        )
    with refusing(spec):
        language, missing = read_language_model(where, model.config)
    if missing:
        raise InputError(
            f"{spec!r} holds no language model: {sorted(missing)[0]} is not among its weights, so it has no word to "
            "say; name the language model itself."
        )
    _put_head(model, language, template, spec)
    _insist_on_same(model, language, template, tokenizer, spec)
    model.config.use_cache = False
    model.config.pair = False  # a context has no place in the prompt
    model.config.veridical_prompt = {"prompt": prompt, "labels": dict(labels), "chat": chat}
    _warn_of_boundary(tokenizer, template, prompt)
    return Classifier(model, with_template(tokenizer, template), name=spec)


@torch.no_grad()
def _put_head(model: Any, language: Any, template: Template, spec: str) -> None:
    """Centred rows: probabilities stay as they are, and a logit is a contrast with the other labels."""
    head = language.get_output_embeddings()
    bias = getattr(head, "bias", None)
    if bias is not None and bool(bias.any()):
        raise InputError(
            f"The language model's head of {spec!r} has a bias, for which its classifier has no place; take another."
        )
    for name in ("final_logit_softcapping", "logit_scale", "logits_scaling", "output_multiplier_scale"):
        if getattr(model.config, name, None) not in (None, 1, 1.0):
            raise InputError(
                f"{spec!r} alters its logits behind the head ({name} is {getattr(model.config, name)}), which a "
                "classifier does not; take another model."
            )
    rows = head.weight[list(template.labels)]
    model.score.weight.copy_(rows - rows.mean(0))


@torch.no_grad()
def _insist_on_same(model: Any, language: Any, template: Template, tokenizer: Any, spec: str) -> None:
    """The classifier says what the language model says, looked at once."""
    text = tokenizer(PLAIN, add_special_tokens=False)["input_ids"]
    ids = torch.tensor([[*template.prefix, *text, *template.suffix]])
    model.eval()
    language.eval()
    due = language(input_ids=ids).logits[0, -1, list(template.labels)]
    given = model(input_ids=ids).logits[0]
    off = float((given - (due - due.mean())).abs().max())
    if off > EXACT * max(1.0, float(due.abs().max())):
        raise InputError(
            f"The classifier of {spec!r} does not say what its language model does (logits differ by {off:.2g}); a "
            "prompt cannot make a classifier of this family."
        )


def _warn_of_boundary(tokenizer: Any, template: Template, prompt: str) -> None:
    share = boundary(tokenizer, template)
    if share < SAME:
        warnings.warn(
            f"In {1 - share:.0%} of sample texts the prompt {prompt!r} and the text make other tokens together than "
            "apart, so that the model reads what it would not when it reads the whole; put a line break, and no space "
            "or quote, before and after {text}.",
            Caution,
            stacklevel=5,
        )
