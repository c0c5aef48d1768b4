"""The BiLSTM-attention classifier of Recursive ROAR (appendix C.1, after Jain and Wallace 2019).

It is an ordinary transformers model: registered with the Auto classes, saved in safetensors, its word
embeddings reached through `get_input_embeddings()`. A text is `[CLS] text [EOS]`, a pair
`[CLS] text [SEP] context [EOS]`. Special tokens are read by the LSTM and never attended; the context
(segment 1) has an encoder of its own and is never attended either. A token with attention mask 0 is invisible
wherever it stands: the output is that of the text without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any, Literal, cast

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.core.seed import seed_of
from veridical.model.names import WIDTH
from veridical.model.vectors import load_vectors


class BiLSTMConfig(PreTrainedConfig):
    """Sizes and token ids."""

    model_type = "bilstm-attention"

    vocab_size: int = 0
    embedding_size: int = 50
    hidden_size: int = WIDTH  # per direction
    attention_size: int = WIDTH
    pair: bool = False
    # From attended text and context to logits. "released", as in the released code:
    # linear(tanh(linear(text) + linear(context))). "paper": linear(text), the "dense layer" of C.1.2.
    pair_decoder: Literal["released", "paper"] = "released"
    pad_token_id: int | None = 0
    mask_token_id: int | None = None
    special_token_ids: tuple[int, ...] | list[int] = ()  # read, never attended


class BiLSTM(nn.Module):
    """Two LSTMs, one reading each way, over the visible tokens of every row."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.rightward = nn.LSTM(width, hidden, batch_first=True)
        self.leftward = nn.LSTM(width, hidden, batch_first=True)

    def forward(self, x: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
        """The state at every token, 0 where invisible [B, T, 2H], and each direction's last state [B, 2H].

        Visible tokens are moved together to the front of the row, so that what follows them is never read by
        the rightward LSTM; the leftward one gets each row reversed by itself. No packing: plain gathers
        differentiate twice and let a token vanish from the middle of a text.
        """
        count = visible.sum(1, keepdim=True)  # [B, 1]
        longest = max(int(count.max()), 1)
        front = (~visible).to(torch.uint8).argsort(dim=1, stable=True)[:, :longest]  # [B, n]
        steps = torch.arange(longest, device=x.device)
        reverse = (count - 1 - steps).clamp(min=0)  # [B, n], its own inverse up to `count`
        x = _take(x, front)  # [B, n, D]
        rightward = _states(x, self.rightward)
        leftward = _take(_states(_take(x, reverse), self.leftward), reverse)
        states = torch.cat([rightward, leftward], dim=-1)  # [B, n, 2H]
        place = (visible.cumsum(1) - 1).clamp(min=0)  # [B, T], where each token went
        end = torch.cat([_take(rightward, (count - 1).clamp(min=0))[:, 0], leftward[:, 0]], dim=-1)
        return (
            _take(states, place).masked_fill(~visible[..., None], 0.0),
            end.masked_fill(count == 0, 0.0),
        )


class BiLSTMForSequenceClassification(PreTrainedModel):
    """Attention over the states of a BiLSTM, then a linear decoder; no dropout."""

    config_class = BiLSTMConfig
    base_model_prefix = "bilstm"
    main_input_name = "input_ids"

    def __init__(self, config: BiLSTMConfig):
        super().__init__(config)
        self.num_labels = classes = len(config.id2label or {})
        states = 2 * config.hidden_size
        self.embeddings = nn.Embedding(config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id)
        self.encoder = BiLSTM(config.embedding_size, config.hidden_size)
        self.attention = nn.Linear(states, config.attention_size)
        self.attention_score = nn.Linear(config.attention_size, 1, bias=False)
        if config.pair:
            self.context_encoder = BiLSTM(config.embedding_size, config.hidden_size)
            self.context_attention = nn.Linear(states, config.attention_size, bias=False)
        if config.pair and config.pair_decoder == "released":
            self.decoder = nn.Linear(states, config.hidden_size)
            self.context_decoder = nn.Linear(states, config.hidden_size)
            self.classifier = nn.Linear(config.hidden_size, classes)
        else:
            self.classifier = nn.Linear(states, classes)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embeddings = cast(nn.Embedding, value)

    def _init_weights(self, module: nn.Module) -> None:
        """PyTorch's own initialisation, as in the released code; embeddings normal, [PAD] and [MASK] 0."""
        if isinstance(module, (nn.Linear, nn.LSTM)):
            module.reset_parameters()
        elif isinstance(module, nn.Embedding) and not getattr(module.weight, "_is_hf_initialized", False):
            nn.init.normal_(module.weight)
            with torch.no_grad():
                for row in (self.config.pad_token_id, self.config.mask_token_id):
                    if row is not None:
                        module.weight[row] = 0.0

    def forward(
        self,
        input_ids: Tensor,  # [B, T]
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> SequenceClassifierOutput | tuple[Tensor, ...]:
        """Logits; attentions as one layer [B, 1, T, T] whose every row is the distribution of eq. 4 or 5.

        Without a token to attend (everything erased) the attention is 0 and so is the attended text.
        """
        config = self.config
        pad = -1 if config.pad_token_id is None else config.pad_token_id
        visible = input_ids != pad if attention_mask is None else attention_mask.bool()
        context = torch.zeros_like(visible) if token_type_ids is None else token_type_ids == 1
        if not config.pair and bool((context & visible).any()):
            raise InputError(
                "This BiLSTM reads single texts, but a context was given; build one for pairs (pair=True), "
                "or leave the context out."
            )
        special = torch.tensor(list(config.special_token_ids), dtype=input_ids.dtype, device=input_ids.device)
        attended = visible & ~context & ~torch.isin(input_ids, special)

        embedded = self.embeddings(input_ids)  # [B, T, D]
        states, _ = self.encoder(embedded, visible & ~context)  # [B, T, 2H]
        energy = self.attention(states)  # [B, T, A]
        end = None
        if config.pair:
            context_states, end = self.context_encoder(embedded, visible & context)
            energy = energy + self.context_attention(end)[:, None]
            states = states + context_states  # each is 0 where the other is not
        scores = self.attention_score(energy.tanh())[..., 0]  # [B, T]
        scores = scores.masked_fill(~attended, torch.finfo(scores.dtype).min)
        weights = scores.softmax(-1).masked_fill(~attended, 0.0)
        # The logits are computed from the first row of what is handed out, so that they can be differentiated
        # by it like those of a transformer.
        tokens = input_ids.shape[1]
        rows = weights[:, None, None, :].expand(-1, 1, tokens, tokens)  # [B, 1, T, T], a view
        text = (rows[:, 0, 0, :, None] * states).sum(1)  # [B, 2H]
        if end is not None and config.pair_decoder == "released":
            text = (self.decoder(text) + self.context_decoder(end)).tanh()
        logits = self.classifier(text)  # [B, C]

        loss = None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=config)
        hidden_wanted = _wanted(output_hidden_states, config.output_hidden_states)
        attentions_wanted = _wanted(output_attentions, config.output_attentions)
        output = SequenceClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=(embedded, states) if hidden_wanted else None,
            attentions=(rows,) if attentions_wanted else None,
        )
        return output if _wanted(return_dict, config.return_dict) else output.to_tuple()


def _wanted(given: bool | None, default: bool | None) -> bool:
    return bool(default if given is None else given)


def _take(x: Tensor, index: Tensor) -> Tensor:
    """x[b, index[b, i]] for x [B, T, D] and index [B, n]: [B, n, D]."""
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))


def _states(x: Tensor, lstm: nn.LSTM) -> Tensor:
    """The states of an LSTM [B, T, H]."""
    # cuDNN differentiates its LSTM once and only in training mode; explanations differentiate in eval mode,
    # and some training terms twice. PyTorch's own kernels do both.
    refuse = x.is_cuda and torch.is_grad_enabled()
    with torch.backends.cudnn.flags(enabled=False) if refuse else nullcontext():
        return lstm(x)[0]


AutoConfig.register(BiLSTMConfig.model_type, BiLSTMConfig)
AutoModelForSequenceClassification.register(BiLSTMConfig, BiLSTMForSequenceClassification)
AutoTokenizer.register(BiLSTMConfig, fast_tokenizer_class=PreTrainedTokenizerFast)


_SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "eos_token": "[EOS]",
    "mask_token": "[MASK]",
}
# Words, English contractions cut as in the treebank that word vectors follow (do n't, it 's), single symbols.
_WORD = r"(?i:\w+(?=n't\b)|n't\b|'(?:s|m|d|re|ve|ll)\b)|\w+|[^\w\s]"


def build_tokenizer(
    texts: Iterable[str],
    *,
    vocabulary: int | None = None,
    lowercase: bool = True,
    min_count: int = 1,
    max_length: int | None = None,
) -> PreTrainedTokenizerFast:
    """A word-level tokenizer of the `vocabulary` most frequent words, ties in alphabetical order."""
    core = Tokenizer(models.WordLevel({token: i for i, token in enumerate(_SPECIAL.values())}, unk_token="[UNK]"))
    if lowercase:
        core.normalizer = normalizers.Lowercase()
    core.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD), behavior="removed", invert=True)
    counts: Counter[str] = Counter()
    for text in texts:
        normal = core.normalizer.normalize_str(text) if lowercase else text
        counts.update(word for word, _ in core.pre_tokenizer.pre_tokenize_str(normal))
    ranked = sorted((word for word in counts if counts[word] >= min_count), key=lambda word: (-counts[word], word))
    tokens = dict.fromkeys([*_SPECIAL.values(), *ranked[:vocabulary]])
    core.model = models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]")
    core.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [EOS]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [EOS]:1",
        special_tokens=[(token, core.token_to_id(token)) for token in ("[CLS]", "[SEP]", "[EOS]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
        **({} if max_length is None else {"model_max_length": max_length}),
        **_SPECIAL,
    )


def special_ids(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """The ids a BiLSTM reads and never attends. [UNK] and [MASK] stand for words and are attended."""
    ids = (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.eos_token_id)
    return sorted({cast(int, i) for i in ids if i is not None})


def build(
    examples: Sequence[Example],
    labels: Sequence[str],
    *,
    pair: bool | None = None,
    embedding: int | None = None,
    hidden: int = WIDTH,
    attention: int | None = None,
    vectors: str | None = None,
    vocabulary: int | None = None,
    lowercase: bool = True,
    min_count: int = 1,
    multilabel: bool = False,
    seed: int = 0,
) -> tuple[BiLSTMForSequenceClassification, PreTrainedTokenizerFast]:
    """An untrained model and its tokenizer for these training examples (Recursive ROAR, table 4).

    The table's rows: standard normal embeddings of 50 for bAbI (our defaults), pretrained ones of 300
    elsewhere: give them as `vectors` (see `veridical.model.vectors`), which also sets their width. The
    attention is as wide as the LSTM (`hidden`) unless it has a width of its own. Words without a vector are
    drawn standard normal; [PAD] and [MASK] start at 0, and [MASK] is trained. With `pair=None` the examples
    decide.
    """
    if not examples:
        raise InputError("There are no examples to take a vocabulary from; give the training split.")
    if not labels:
        raise InputError("There are no labels; give the names of the classes.")
    contexts = [example.context for example in examples if example.context is not None]
    if pair is None:
        pair = bool(contexts)
    if contexts and not pair:
        raise InputError(f"{len(contexts)} examples have a context, but pair=False; use pair=True, or drop them.")
    texts = [example.text for example in examples] + contexts
    tokenizer = build_tokenizer(texts, vocabulary=vocabulary, lowercase=lowercase, min_count=min_count)

    known = {} if vectors is None else load_vectors(vectors, set(tokenizer.get_vocab()) - set(_SPECIAL.values()))
    width = len(next(iter(known.values()))) if known else embedding or 50
    if embedding not in (None, width):
        raise InputError(f"embedding={embedding}, but the vectors of {vectors!r} are {width} wide; leave it out.")
    settings: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "embedding_size": width,
        "hidden_size": hidden,
        "attention_size": hidden if attention is None else attention,
        "pair": pair,
        "pad_token_id": tokenizer.pad_token_id,
        "mask_token_id": tokenizer.mask_token_id,
        "special_token_ids": special_ids(tokenizer),
        "id2label": dict(enumerate(labels)),
        "label2id": {label: i for i, label in enumerate(labels)},
        "problem_type": "multi_label_classification" if multilabel else "single_label_classification",
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed_of("bilstm", seed))
        model = BiLSTMForSequenceClassification(BiLSTMConfig(**settings)).eval()
    with torch.no_grad():
        for word, vector in known.items():
            row = cast(int, tokenizer.convert_tokens_to_ids(word))
            model.embeddings.weight[row] = torch.from_numpy(np.array(vector, dtype=np.float32))
    return model, tokenizer
