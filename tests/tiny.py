"""Tiny random classifiers of every family and their tokenizers, made in memory.

`tiny("roberta")` returns a new copy of a cached model, so that a test may train or break it. The weights are
noise far larger than any initialisation, biases, LayerNorms and the [PAD] row included: a wrong position, a
forgotten bias or a leak through padding shows in the first digits.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch.overrides import TorchFunctionMode
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BigBirdConfig,
    DebertaConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    ModernBertConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
)

from tiny_families import DECODERS, ENCODERS, OTHERS, config_of

TRANSFORMERS: tuple[str, ...] = (
    "bert",
    "roberta",
    "distilbert",
    "electra",
    "deberta",
    "deberta_v2",
    "modernbert",
    "big_bird",
)
FAMILIES: tuple[str, ...] = (*TRANSFORMERS, "bilstm")
FURTHER: tuple[str, ...] = (*DECODERS, *ENCODERS)

TEXTS: tuple[str, ...] = (
    "Good",
    "An unbelievable film!",
    "The plot was boring, but the acting is really very good.",
    "Caf\u00e9 na\u00efve \U0001f600 \u2013 100% \u201cwow\u201d\u2026",
    "I loved the story and I hated the end of it, but the film was not as bad as the book that it came from.",
    "not  good\nnot bad",  # runs of white space and a line break
)
PAIRS: tuple[tuple[str, str], ...] = (
    ("John went to the kitchen. Mary took the apple.", "Where is John?"),
    ("A boring plot", "The film was unbelievable, really."),
    ("Good", "Bad"),
)

LENGTH = 64  # longest input, special tokens included

_SENTENCES = """
the film was not good and the book is bad
i loved this great story but hated a boring plot in an end that came of it
as wow really very acting from
where john went to mary took kitchen apple
"""
_WORDS = tuple(dict.fromkeys(_SENTENCES.split()))
_PIECES = ("un", "believ", "able", "ing", "ed", "ly", "er", "s")  # "unbelievable" is never one piece
_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,!?%'\"-"


def tiny(
    family: str,
    *,
    num_labels: int = 3,
    problem_type: str | None = None,
    seed: int = 0,
    pair: bool = False,
    layout: str = "usual",
    **config: Any,
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A float32 sequence classifier in eval mode and its tokenizer.

    `pair` asks for a model that reads (text, context): it matters to the BiLSTM alone. `layout="scibert"`
    gives bert the special ids 102 for [CLS] and 103 for [SEP], with [UNK] at 101. Further names go to the
    configuration.
    """
    if family not in (*FAMILIES, *FURTHER, *OTHERS):
        raise ValueError(f"no tiny model of family {family!r}; there are {', '.join((*FAMILIES, *FURTHER))}")
    settings = {"num_labels": num_labels, "problem_type": problem_type, **config}
    model, tokenizer = _make(family, seed, pair, layout, tuple(settings.items()))
    return copy.deepcopy(model), tokenizer


@functools.cache
def _make(
    family: str, seed: int, pair: bool, layout: str, settings: tuple[tuple[str, Any], ...]
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    tokenizer = tiny_tokenizer(family, layout)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = _config(family, tokenizer, pair, dict(settings))
        model = AutoModelForSequenceClassification.from_config(config).float().eval()
        with torch.no_grad():
            for name, weight in model.named_parameters():
                size = 0.2 if weight.ndim == 1 else 0.7 if "embedding" in name else 0.25
                weight += size * torch.randn(weight.shape)
    return model, tokenizer


def _config(family: str, tokenizer: PreTrainedTokenizerFast, pair: bool, settings: dict[str, Any]) -> PretrainedConfig:
    if family == "bilstm":
        from veridical.model.bilstm import BiLSTMConfig, special_ids

        small = {"embedding_size": 24, "hidden_size": 16, "attention_size": 16, "pair": pair}
        ids = {"pad_token_id": tokenizer.pad_token_id, "special_token_ids": special_ids(tokenizer)}
        return BiLSTMConfig(**{"vocab_size": len(tokenizer), **small, **ids, **settings})

    small = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 48,
        "max_position_embeddings": LENGTH,
        "pad_token_id": tokenizer.pad_token_id,
    }
    if family in (*FURTHER, *OTHERS):
        return config_of(family, tokenizer, small, settings)
    relative = {
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
    }
    if family == "bert":
        return BertConfig(**{**small, **settings})
    if family == "roberta":  # positions start after the padding id
        small["max_position_embeddings"] += 2
        return RobertaConfig(**{**small, "type_vocab_size": 1, **settings})
    if family == "distilbert":
        other = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"}
        other["intermediate_size"] = "hidden_dim"
        return DistilBertConfig(**{**{other.get(k, k): v for k, v in small.items()}, **settings})
    if family == "electra":  # a narrower embedding, projected, as in ELECTRA small
        return ElectraConfig(**{**small, "embedding_size": 24, **settings})
    if family == "deberta":
        return DebertaConfig(**{**small, **relative, **settings})
    if family == "deberta_v2":  # as in DeBERTa v3
        buckets = {"position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True}
        return DebertaV2Config(**{**small, **relative, **buckets, **settings})
    if family == "modernbert":  # full, sliding, sliding, with a window that cuts
        ids = {"bos_token_id": tokenizer.cls_token_id, "eos_token_id": tokenizer.sep_token_id}
        ids |= {"cls_token_id": tokenizer.cls_token_id, "sep_token_id": tokenizer.sep_token_id}
        return ModernBertConfig(**{**small, "num_hidden_layers": 3, "local_attention": 16, **ids, **settings})
    ids = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    return BigBirdConfig(**{**small, "attention_type": "original_full", **ids, **settings})


@functools.cache
def tiny_tokenizer(family: str, layout: str = "usual") -> PreTrainedTokenizerFast:
    """The tokenizer of one family: algorithm, special tokens, templates and offsets as in the real one."""
    if family in ("bert", "electra", "distilbert", "ernie", "nomic_bert"):
        return _wordpiece(layout, types=family != "distilbert")
    if family in (*DECODERS, *OTHERS):
        return _decoder(layout)
    if family in ("roberta", "mpnet"):
        return _roberta()
    if family == "deberta":
        return _byte_level(["[PAD]", "[CLS]", "[SEP]", "[UNK]"], ["[MASK]"], types=True)
    if family in ("modernbert", "eurobert"):  # special tokens stand at the end of the vocabulary
        return _byte_level([], ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"], types=False)
    if family in ("deberta_v2", "albert"):
        spaces = normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " ")
        return _sentencepiece(
            ["[PAD]", "[CLS]", "[SEP]", "[UNK]"],
            ["[MASK]"],
            normalizers.Sequence([spaces, normalizers.NFC()]),
            _BERT_NAMES,
            types=True,
        )
    if family == "big_bird":  # [CLS] [SEP] [MASK] in the middle and <unk> far from 0, as in the real vocabulary
        unused = [f"<unused{i}>" for i in range(17)]
        return _sentencepiece(
            ["<pad>", "</s>", "<s>", *unused, "[CLS]", "[SEP]", "[MASK]", "<unk>"],
            [],
            normalizers.Replace(Regex(r" {2,}"), " "),
            {
                **_BERT_NAMES,
                "unk_token": "<unk>",
                "pad_token": "<pad>",
                "bos_token": "<s>",
                "eos_token": "</s>",
            },
            types=False,
        )
    from veridical.model.bilstm import build_tokenizer

    texts = [_SENTENCES, *TEXTS[:3], *(part for pair in PAIRS for part in pair)]
    return build_tokenizer(texts, vocabulary=None, lowercase=True, max_length=LENGTH)


_BERT_NAMES = {
    "unk_token": "[UNK]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def _wrap(core: Tokenizer, names: dict[str, str], *, types: bool) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_max_length=LENGTH,
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", *(["token_type_ids"] if types else []), "attention_mask"],
        **names,
    )


def _template(core: Tokenizer) -> processors.TemplateProcessing:
    return processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(token, core.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )


def _wordpiece(layout: str, *, types: bool) -> PreTrainedTokenizerFast:
    continued = (f"##{piece}" for piece in (*_PIECES, *_CHARACTERS))
    ordinary = list(dict.fromkeys([*_WORDS, *_PIECES, *_CHARACTERS, *continued]))
    if layout == "scibert":
        tokens = ["[PAD]", *ordinary[:100], "[UNK]", "[CLS]", "[SEP]", "[MASK]", *ordinary[100:]]
    elif layout == "usual":
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *ordinary]
    else:
        raise ValueError(f"no layout {layout!r}; there are 'usual' and 'scibert'")
    core = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece(prefix="##")
    core.post_processor = _template(core)
    return _wrap(core, _BERT_NAMES, types=types)


def _byte_pairs(head: list[str], tail: list[str], unknown: str) -> Tokenizer:
    """A byte-level BPE that knows our words after a space, capitalised ones without, and the pieces."""
    spaced = [f"\u0120{word}" for word in (*_WORDS, "un")]  # U+0120 is how byte-level BPE writes a space
    bare = [*_PIECES, *(word.capitalize() for word in _WORDS)]
    merges = dict.fromkeys((word[:i], word[i]) for word in (*spaced, *bare) for i in range(1, len(word)))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = dict.fromkeys([*alphabet, *(left + right for left, right in merges)])
    vocabulary = {token: i for i, token in enumerate([*head, *pieces, *tail])}
    core = Tokenizer(models.BPE(vocabulary, list(merges), unk_token=unknown))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    return core


def _byte_level(head: list[str], tail: list[str], *, types: bool) -> PreTrainedTokenizerFast:
    core = _byte_pairs(head, tail, "[UNK]")
    core.post_processor = _template(core)  # trims no offsets: a word's span holds its leading space
    return _wrap(core, _BERT_NAMES, types=types)


def _roberta() -> PreTrainedTokenizerFast:
    core = _byte_pairs(["<s>", "<pad>", "</s>", "<unk>"], ["<mask>"], "<unk>")
    # <s> a </s></s> b </s>, offsets trimmed, no space put before the first word: the real one's settings.
    core.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, False)
    names = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}
    names |= {"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}
    return _wrap(core, names, types=False)


def _decoder(layout: str) -> PreTrainedTokenizerFast:
    """<s> and the text, no end and no mask token, as Llama's; layout "bare" adds nothing, as GPT-2's and SmolLM2's."""
    core = _byte_pairs(["<pad>", "<s>", "</s>", "<unk>"], [], "<unk>")
    if layout != "bare":
        begin = ("<s>", core.token_to_id("<s>"))
        core.post_processor = processors.TemplateProcessing(
            single="<s>:0 $A:0", pair="<s>:0 $A:0 <s>:1 $B:1", special_tokens=[begin]
        )
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    return _wrap(core, names, types=False)


def _sentencepiece(
    head: list[str], tail: list[str], normalizer: Any, names: dict[str, str], *, types: bool
) -> PreTrainedTokenizerFast:
    words = [f"\u2581{word}" for word in (*_WORDS, *(word.capitalize() for word in _WORDS), "un")]
    score = dict.fromkeys((*words, *_PIECES), -2.0)
    for character in ("\u2581", *_CHARACTERS, *_CHARACTERS.upper()):
        score.setdefault(character, -8.0)
    tokens = [*head, *score, *tail]
    core = Tokenizer(models.Unigram([(t, score.get(t, 0.0)) for t in tokens], tokens.index(names["unk_token"]), False))
    core.normalizer = normalizer
    core.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    core.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    core.post_processor = _template(core)
    return _wrap(core, names, types=types)


class Double(TorchFunctionMode):
    """float64 throughout: DeBERTa's LayerNorm and ModernBERT's softmax go through float32 whatever the weights are."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.float:
            return args[0].double()
        wide = {torch.float32: torch.float64}
        args = tuple(wide.get(a, a) if isinstance(a, torch.dtype) else a for a in args)
        kwargs = {k: wide.get(v, v) if isinstance(v, torch.dtype) else v for k, v in (kwargs or {}).items()}
        return func(*args, **kwargs)
