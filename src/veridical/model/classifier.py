"""One `Classifier` for every transformers sequence classifier and for the BiLSTM.

The one seam into the network is `forward(batch, edit=f)`, where `f` changes the word embeddings. It is a hook on
`get_input_embeddings()`: passing `inputs_embeds` is not the same in RoBERTa, which numbers positions by pad ids.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from veridical.core.errors import InputError
from veridical.core.place import at_home, check_folder, check_shards
from veridical.core.records import Batch, Encoded, Example, Output, Variant
from veridical.model.encode import encode, token_limit
from veridical.model.interruption import go_on
from veridical.model.pretrained import quietly
from veridical.model.sound import insist_on_family

Kind = Literal["single", "multi", "one_logit"]
Edit = Callable[[torch.Tensor], torch.Tensor]


class Classifier:
    """A sequence classifier with its tokenizer: what `load` returns. Class logits and probabilities always have a
    column per class.

    Args:
        model: A transformers sequence classifier, or our BiLSTM.
        tokenizer: Its fast tokenizer. Without one it cannot read text, only ids.
        name: What reports call it. Default: the name in its configuration.
        trained: Whether its head was trained.

    Example:
        >>> clf = veridical.load("runs/mine")
        >>> clf.labels, clf.limit
    """

    def __init__(self, model: Any, tokenizer: Any = None, *, name: str = "", trained: bool = True):
        if tokenizer is not None and not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"The tokenizer {type(tokenizer).__name__} cannot say which characters a token covers; "
                "load the fast one (AutoTokenizer does by default)."
            )
        insist_on_family(model.config)
        self.model, self.tokenizer, self.trained = model, tokenizer, trained
        self.name = name or getattr(model.config, "name_or_path", "") or type(model).__name__
        self.kind: Kind = kind_of(model.config)
        self.labels = label_names(model.config, self.kind)
        self.limit = token_limit(model, tokenizer)
        self.forwards = self.backwards = 0  # sequences, for the cost of an explanation
        self.asked = (
            0  # tokens of the questions asked: erased texts are shorter, so that sequences do not tell their cost
        )
        self._accepts = frozenset(inspect.signature(model.forward).parameters)
        if not getattr(model.config, "type_vocab_size", None):
            self._accepts -= {"token_type_ids"}  # GPT-2 takes segments and would add the word vectors of ids 0 and 1

    def __repr__(self) -> str:
        return f"Classifier({self.name!r}, {self.kind}, labels={list(self.labels)}, limit={self.limit})"

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    @property
    def family(self) -> str:
        """The kind of its encoder, as transformers names it: bert, roberta, ..."""
        return self.model.config.model_type

    # -- text in --------------------------------------------------------------------------------------------

    def encode(
        self, examples: Sequence[Example], *, overlap: int | None = None, limit: int | None = None
    ) -> list[Encoded]:
        """One encoding per example, texts cut at the limit (`cut` says by how much); with `overlap`, as many
        overlapping windows per example as its text needs, in order."""
        if self.tokenizer is None:
            raise InputError("This classifier was given without its tokenizer, so it cannot read text; pass both.")
        if getattr(self.model.config, "veridical_prompt", None) and any(e.context is not None for e in examples):
            raise InputError(
                f"{self.name} has a prompt, in which there is no place for a context; write it into the text, or leave "
                "it out."
            )
        return encode(self.tokenizer, examples, min(limit or self.limit, self.limit), overlap)

    def read_at_most(self, limit: int) -> None:
        """Cut texts at so many tokens, now and wherever the saved classifier is loaded: its tokenizer says so."""
        if limit > self.limit:
            raise InputError(f"max_length is {limit}, but {self.name} takes {self.limit} tokens at most; lower it.")
        if self.tokenizer is None:
            raise InputError("This classifier was given without its tokenizer, so it cannot read text; pass both.")
        self.limit = self.tokenizer.model_max_length = limit

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Token ids as the tokenizer writes them."""
        if self.tokenizer is None:
            raise InputError("This classifier was given without its tokenizer, so its tokens have no names; pass both.")
        return self.tokenizer.convert_ids_to_tokens(list(ids))

    def collate(self, encoded: Sequence[Encoded]) -> Batch:
        """Right-padded tensors on the model's device."""
        real = _real([len(e.ids) for e in encoded])
        ids, types = self._padded(encoded, real)
        free, device = _filled(real, (e.free for e in encoded), False, bool), self.device
        return Batch(tuple(encoded), ids, types, *(torch.from_numpy(part).to(device) for part in (real, free)))

    def collate_variants(self, variants: Sequence[Variant]) -> Batch:
        """The same for altered inputs, which have no example; tokens that are not attended to stay in place."""
        real = _real([len(v.ids) for v in variants])
        ids, types = self._padded(variants, real)
        attend = (repeat(True, len(v.ids)) if v.attend is None else v.attend for v in variants)
        mask = torch.from_numpy(_filled(real, attend, False, bool)).to(self.device)
        return Batch((), ids, types, mask, mask)

    def _padded(self, rows: Sequence[Encoded] | Sequence[Variant], real: np.ndarray) -> tuple[torch.Tensor, ...]:
        pad = self.model.config.pad_token_id
        ids = _filled(real, (row.ids for row in rows), 0 if pad is None else pad, np.int64)
        self.insist_on_rows(int(ids.min()), int(ids.max()))
        types, device = _filled(real, (row.types for row in rows), 0, np.int64), self.device
        return tuple(torch.from_numpy(part).to(device) for part in (ids, types))

    def insist_on_rows(self, lowest: int, highest: int) -> None:
        """Refuse ids without a word vector, which torch would look up outside of the table."""
        count = self.model.get_input_embeddings().weight.shape[0]
        if lowest < 0 or highest >= count:
            strange = lowest if lowest < 0 else highest
            raise InputError(
                f"There is a token with the id {strange}, but {self.name} has word vectors for 0 to {count - 1}; give "
                "it the tokenizer and the pad_token_id that it was trained with."
            )

    # -- the seam -------------------------------------------------------------------------------------------

    def forward(
        self, batch: Batch, *, edit: Edit | None = None, attentions: bool = False, hidden: bool = False
    ) -> Output:
        """Run the model; `edit` receives the word embeddings [B, T, D] and returns those to use instead."""
        go_on()
        seen: list[torch.Tensor] = []

        def hook(module: torch.nn.Module, args: tuple, output: torch.Tensor) -> torch.Tensor:
            seen.append(output if edit is None else edit(output))
            return seen[-1]

        inputs: dict[str, Any] = {"input_ids": batch.ids, "attention_mask": batch.mask.long()}
        if "token_type_ids" in self._accepts:
            inputs["token_type_ids"] = batch.types
        handle = self.model.get_input_embeddings().register_forward_hook(hook)
        try:
            out = self.model(**inputs, output_attentions=attentions, output_hidden_states=hidden)
        finally:
            handle.remove()
        self.forwards += len(batch.ids)
        if len(seen) != 1:
            raise InputError(
                f"{self.name} ({self.family}) looked up its word embeddings {len(seen)} times in one pass, "
                "not once; such a model cannot be explained through them."
            )
        if not hasattr(out, "logits"):
            raise InputError(
                f"{self.name} ({type(self.model).__name__}) gives no logits, so it is no classifier; load it with "
                "AutoModelForSequenceClassification."
            )
        if out.logits.shape[-1] != self.model.config.num_labels:
            raise InputError(
                f"{self.name} gives {out.logits.shape[-1]} logits, but its configuration names "
                f"{self.model.config.num_labels} classes; mend id2label."
            )
        if attentions:
            self._insist_on_attentions(getattr(out, "attentions", None))
        return Output(
            logits=class_logits(out.logits, self.kind),
            embeddings=seen[0],
            attentions=tuple(out.attentions) if attentions else (),
            hidden=tuple(out.hidden_states) if hidden else (),
        )

    def _insist_on_attentions(self, attentions: Any) -> None:
        layers = getattr(self.model.config, "num_hidden_layers", 1)
        if self.model.config.is_encoder_decoder:
            raise InputError(
                f"{self.name} ({self.family}) has an encoder and a decoder, and no one attention to look at; choose a "
                "method that needs none."
            )
        if attentions is None or len(attentions) < layers or any(a is None for a in attentions):
            raise RuntimeError(
                f"{self.name} ({self.family}) returned {len(attentions or ())} attention maps for {layers} "
                "layers; ask for them inside `with classifier.eager():`"
            )

    def gradient(
        self, value: torch.Tensor, wrt: Sequence[torch.Tensor], *, keep: bool | None = None
    ) -> list[torch.Tensor]:
        """Gradients of the summed `value` [B]. With trainable parameters (a training guide) they can be
        differentiated again; at rest they cannot. `keep` holds on to the graph for a further call."""
        go_on()
        second = any(parameter.requires_grad for parameter in self.model.parameters())
        self.backwards += len(value)
        return list(torch.autograd.grad(value.sum(), list(wrt), create_graph=second, retain_graph=keep or second))

    def probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        """[B, C]: softmax, or a sigmoid per class for multi-label and one-logit heads."""
        return logits.softmax(-1) if self.kind == "single" else logits.sigmoid()

    @contextmanager
    def eager(self) -> Iterator[None]:
        """Attention weights can be asked for inside: fused attention kernels return none, with only a log line."""
        before = getattr(self.model.config, "_attn_implementation", None)
        if before in (None, "eager"):
            yield
            return
        if self.family == "falcon":
            raise InputError(
                f"{self.name} is a Falcon, which computes something else once it is switched to eager attention; load "
                'it with attn_implementation="eager", or choose a method that needs no attention weights.'
            )
        self.model.set_attn_implementation("eager")
        try:
            yield
        finally:
            self.model.set_attn_implementation(before)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Dropout off inside; parameters train as they did."""
        mode = [(module, module.training) for module in self.model.modules()]
        self.model.eval()
        try:
            yield
        finally:
            for module, training in mode:
                module.training = training

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Dropout off and parameters frozen inside, so that a backward pass computes input gradients only."""
        trainable = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        with self.still():
            for parameter in trainable:
                parameter.requires_grad_(False)
            try:
                yield
            finally:
                for parameter in trainable:
                    parameter.requires_grad_(True)

    def fingerprint(self) -> str:
        """A hash of the weights: the same name may hold another model tomorrow."""
        digest = hashlib.blake2b(digest_size=8)
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def save(self, folder: str | Path) -> None:
        """A folder that `veridical.load` and the Auto classes read: safetensors, configuration, tokenizer."""
        folder = at_home(folder)
        check_folder(folder)  # where there is a file, the library would say so in its log alone, and write nothing
        check_shards(folder)
        with quietly():
            self.model.save_pretrained(folder)
        if self.tokenizer is not None:
            self.tokenizer.save_pretrained(folder)


def _real(lengths: Sequence[int]) -> np.ndarray:
    """Where rows of these lengths have a token once they are padded on the right. [B, T]"""
    return np.arange(max(lengths)) < np.array(lengths)[:, None]


def _filled(real: np.ndarray, rows: Iterable[Iterable[int]], padding: int, kind: type) -> np.ndarray:
    """The rows' values where there are tokens, `padding` elsewhere. [B, T]

    All rows at once: a tensor for each row took a fifth of an epoch of a small model.
    """
    padded = np.full(real.shape, padding, dtype=kind)
    padded[real] = np.fromiter(chain.from_iterable(rows), dtype=kind, count=int(real.sum()))
    return padded


def leaf(embeddings: torch.Tensor) -> torch.Tensor:
    """An edit that lets gradients stop at the word embeddings; a graph that is already there is kept."""
    return embeddings if embeddings.requires_grad else embeddings.detach().requires_grad_()


def kind_of(config: Any) -> Kind:
    """Single-label, multi-label or one-logit, from `problem_type` and the width of the head."""
    if config.problem_type == "regression":
        raise InputError("This model is a regressor (problem_type is 'regression'); Veridical explains classifiers.")
    if config.problem_type == "multi_label_classification":
        return "multi"
    if config.problem_type not in (None, "single_label_classification"):
        raise InputError(
            f"problem_type in config.json is {config.problem_type!r}; it must be single_label_classification, "
            "multi_label_classification or left out."
        )
    return "one_logit" if config.num_labels == 1 else "single"


def label_names(config: Any, kind: Kind) -> tuple[str, ...]:
    missing = [i for i in range(config.num_labels) if i not in config.id2label]
    if missing:
        raise InputError(
            f"id2label in config.json has no name for class {missing[0]} of {config.num_labels} (it has: "
            f"{', '.join(map(str, config.id2label))}); number the classes from 0 without a gap."
        )
    names = tuple(str(config.id2label[i]) for i in range(config.num_labels))
    return (f"not {names[0]}", names[0]) if kind == "one_logit" else names


def class_logits(logits: torch.Tensor, kind: Kind) -> torch.Tensor:
    """A logit per class: a one-logit head z gives class 0 the logit -z and class 1 the logit z."""
    return torch.cat([-logits, logits], dim=-1) if kind == "one_logit" else logits
