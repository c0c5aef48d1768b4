"""Decoders read the last token: pad tokens, where the head reads, and rows that would be read wrong."""

from __future__ import annotations

import copy
import re

import pytest
import torch

import veridical
from tiny import TEXTS, tiny, tiny_tokenizer
from tiny_families import DECODERS
from veridical.core.errors import InputError
from veridical.core.records import Batch, Example
from veridical.model.classifier import Classifier
from veridical.model.load import load
from veridical.model.pooling import last_positions, pool_of, read_row

EXAMPLES = [Example(str(i), text) for i, text in enumerate(TEXTS)]


@pytest.mark.parametrize("family", DECODERS)
def test_a_decoder_reads_the_last_token_that_is_not_the_pad_token(family: str) -> None:
    model, tokenizer = tiny(family)
    clf = Classifier(model, tokenizer)
    batch = clf.collate(clf.encode(EXAMPLES))
    ids = batch.ids.clone()
    ids[-1, batch.mask[-1].sum() - 1] = tokenizer.pad_token_id  # a text that ends in the pad token, attended to
    with torch.no_grad():
        out = clf.forward(Batch((), ids, batch.types, batch.mask, batch.free), hidden=True)
    place = last_positions(ids, tokenizer.pad_token_id)
    read = out.hidden[-1][torch.arange(len(ids)), place]
    torch.testing.assert_close(read @ model.score.weight.T, out.logits, atol=1e-5, rtol=0)
    assert place.tolist()[:-1] == (batch.mask.sum(-1) - 1).tolist()[:-1]
    assert place[-1] == batch.mask[-1].sum() - 2
    assert pool_of(model.config) == "last"
    rows = torch.arange(ids.shape[1]).float()[None, :, None].expand(len(ids), -1, 3)
    batch = Batch((), ids, batch.types, batch.mask, batch.free)
    assert read_row(clf, rows, batch)[:, 0].tolist() == place.tolist()


@pytest.mark.parametrize(
    ("missing", "takes"), [((), "<pad>"), (("pad_token",), "</s>"), (("pad_token", "eos_token"), "<unk>")]
)
def test_load_gives_a_decoder_a_pad_token_and_pads_on_the_right(missing: tuple[str, ...], takes: str) -> None:
    model, tokenizer = tiny("llama")
    tokenizer = copy.deepcopy(tokenizer)
    for name in missing:
        setattr(tokenizer, name, None)
    model.config.pad_token_id = None
    tokenizer.padding_side = "left"
    clf = load(model, tokenizer)
    assert clf.model.config.pad_token_id == tokenizer.convert_tokens_to_ids(takes) == tokenizer.pad_token_id
    assert tokenizer.padding_side == "right"
    encoded = clf.encode(EXAMPLES)
    with torch.no_grad():
        together = clf.forward(clf.collate(encoded)).logits
        alone = torch.cat([clf.forward(clf.collate([e])).logits for e in encoded])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


def test_a_decoder_without_any_token_to_pad_with_is_refused() -> None:
    model, tokenizer = tiny("llama")
    tokenizer = copy.deepcopy(tokenizer)
    for name in ("pad_token", "eos_token", "unk_token"):
        setattr(tokenizer, name, None)
    model.config.pad_token_id = None
    with pytest.raises(InputError, match=r"'llama' model has no pad token.*set tokenizer.pad_token"):
        load(model, tokenizer)


def test_a_pad_token_that_a_model_has_is_kept_and_encoders_are_left_alone() -> None:
    model, tokenizer = tiny("gpt2")
    model.config.pad_token_id = tokenizer.eos_token_id
    assert load(model, tokenizer).model.config.pad_token_id == tokenizer.eos_token_id
    model, tokenizer = tiny("bert")
    model.config.pad_token_id = None
    assert load(model, tokenizer).model.config.pad_token_id is None


def test_gpt2_is_not_sent_segments_that_it_would_look_up_as_words() -> None:
    model, _ = tiny("gpt2")
    ids = torch.tensor([[1, 30, 40, 50]])
    with torch.no_grad():
        expected = model(ids).logits.max().item()
    clf = Classifier(model, tiny_tokenizer("gpt2"))
    everything = torch.ones_like(ids, dtype=torch.bool)
    with torch.no_grad():
        out = clf.forward(Batch((), ids, torch.zeros_like(ids), everything, everything))
    assert out.logits.max().item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("method", ["gradient", "attention", "occlusion"])
def test_rows_that_would_be_read_wrong_are_refused(method: str) -> None:
    model, _ = tiny("gpt2")  # pad is 0
    ids, mask = torch.tensor([[0, 0, 1, 30, 40]]), torch.tensor([[0, 0, 1, 1, 1]])
    special = torch.tensor([[0, 0, 1, 0, 0]])
    with pytest.raises(InputError, match=r"Row 0 .*padded on the left.*padding_side='right'"):
        veridical.attribute(model, ids, mask, method, special_tokens_mask=special)
    ids, mask = torch.tensor([[1, 30, 40, 2, 2]]), torch.tensor([[1, 1, 1, 0, 0]])
    with pytest.raises(InputError, match=re.escape("position 4, which attention_mask leaves out; pad on the right")):
        veridical.attribute(model, ids, mask, method, special_tokens_mask=torch.tensor([[1, 0, 0, 0, 0]]))
    model.config.pad_token_id = None
    with pytest.raises(InputError, match=r"no pad_token_id.*one row at a time"):
        veridical.attribute(model, torch.tensor([[1, 30], [1, 40]]), method=method)
