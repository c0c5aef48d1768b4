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
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from veridical.core.errors import InputError
from veridical.core.ranges import Seed, at_least, between
from veridical.core.records import Example
from veridical.core.seed import seed_of
from veridical.model.names import WIDTH
from veridical.model.vectors import load_vectors

Width = Annotated[int, between(1, 100_000)]


class BiLSTMConfig(PretrainedConfig):
    """Sizes and token ids."""

    model_type = "bilstm-attention"

    vocab_size: int = 0
    embedding_size: int = 50
    hidden_size: int = WIDTH  # per direction
    attention_size: int = WIDTH
    pair: bool = False
    type_vocab_size: ClassVar[int] = 2  # text and context: it reads `token_type_ids`, and has no table of them
    # From attended text and context to logits. "released", as in the released code:
    # linear(tanh(linear(text) + linear(context))). "paper": linear(text), the "dense layer" of C.1.2.
    pair_decoder: Literal["released", "paper"] = "released"
    pad_token_id: int | None = 0
    mask_token_id: int | None = None
    special_token_ids: tuple[int, ...] | list[int] = ()  # read, never attended


@dataclass(frozen=True, slots=True)
class Reading:
    """What two LSTMs said of the visible tokens of every row, each in the order in which it read them: n is the most
    visible tokens of a row, and time comes first, as the LSTMs' kernels have it."""

    rightward: Tensor  # [n, B, H]
    leftward: Tensor  # [n, B, H]
    reverse: Tensor  # [n * B]
    visible: Tensor  # [B, T]
    count: Tensor  # [B, 1], visible tokens
    moved: bool  # else every token is where it was

    def states(self) -> Tensor:
        """Both states at every token [B, T, 2H]; at invisible ones something finite that means nothing."""
        both = (self.rightward, _Reordered.apply(self.leftward, self.reverse))
        states = torch.cat([direction.transpose(0, 1) for direction in both], dim=-1)  # [B, n, 2H]
        if self.moved:
            return _take(states, (self.visible.cumsum(1) - 1).clamp(min=0))
        return nn.functional.pad(states, (0, 0, 0, self.visible.shape[1] - states.shape[1]))

    def end(self) -> Tensor:
        """Each direction's last state, 0 where nothing is visible. [B, 2H]"""
        last = (self.count - 1).clamp(min=0)
        ends = [_take(states.transpose(0, 1), last)[:, 0] for states in (self.rightward, self.leftward)]
        return torch.cat(ends, dim=-1).masked_fill(self.count == 0, 0.0)


class BiLSTM(nn.Module):
    """Two LSTMs, one reading each way, over the visible tokens of every row."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.rightward = nn.LSTM(width, hidden, batch_first=True)
        self.leftward = nn.LSTM(width, hidden, batch_first=True)

    def forward(self, x: Tensor, visible: Tensor) -> Reading:
        """Visible tokens [B, T] of x [B, T, D] are moved together to the front of the row, so that what follows them is
        never read by the rightward LSTM; the leftward one gets each row reversed by itself. No packing: it is slower,
        and moving tokens differentiates twice and lets one vanish from the middle of a text.
        """
        count = visible.sum(1, keepdim=True)  # [B, 1]
        longest = max(int(count.max()), 1)
        moved = bool((visible != (torch.arange(visible.shape[1], device=x.device) < count)).any())
        if moved:
            x = _take(x, (~visible).to(torch.uint8).argsort(dim=1, stable=True)[:, :longest])
        x = x[:, :longest].transpose(0, 1).contiguous()  # [n, B, D]
        reverse = _reversal(count[:, 0], longest)
        leftward = _states(_Reordered.apply(x, reverse), self.leftward)
        return Reading(_states(x, self.rightward), leftward, reverse, visible, count, moved)


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
        text, context, attended = self._masks(input_ids, attention_mask, token_type_ids)
        embedded = self.embeddings(input_ids)  # [B, T, D]
        states = self.encoder(embedded, text).states()  # [B, T, 2H]
        end = context_read = None
        if config.pair:
            context_read = self.context_encoder(embedded, context)
            end = context_read.end()
        weights: Any = self._weights(states, end, attended)  # [B, T]
        hidden_wanted = _wanted(output_hidden_states, config.output_hidden_states)
        attentions_wanted = _wanted(output_attentions, config.output_attentions)
        if hidden_wanted or attentions_wanted:  # else weights of 0 hide what is no state of the text
            states = states.masked_fill(~text[..., None], 0.0)
            if context_read is not None:
                states = states + context_read.states().masked_fill(~context[..., None], 0.0)
        # The logits are computed from the first row of what is handed out, so that they can be differentiated
        # by it like those of a transformer.
        tokens = input_ids.shape[1]
        rows = weights[:, None, None, :].expand(-1, 1, tokens, tokens)  # [B, 1, T, T], a view
        summary = (rows[:, 0, 0, :, None] * states).sum(1)  # [B, 2H]
        if end is not None and config.pair_decoder == "released":
            summary = (self.decoder(summary) + self.context_decoder(end)).tanh()
        logits = self.classifier(summary)  # [B, C]

        loss = None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=config)
        output = SequenceClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=(embedded, states) if hidden_wanted else None,
            attentions=(rows,) if attentions_wanted else None,
        )
        return output if _wanted(return_dict, config.return_dict) else output.to_tuple()

    def _weights(self, states: Tensor, end: Tensor | None, attended: Tensor) -> Tensor:
        """The attention to each token, given the context's end state where there is a context. [B, T]"""
        energy = self.attention(states)  # [B, T, A]
        if end is not None:
            energy = energy + self.context_attention(end)[:, None]
        scores = self.attention_score(energy.tanh())[..., 0]  # [B, T]
        scores = scores.masked_fill(~attended, torch.finfo(scores.dtype).min)
        return scores.softmax(-1).masked_fill(~attended, 0.0)

    def _masks(
        self, input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Where there is text, where context, and where text that may be attended. [B, T] each"""
        config = self.config
        pad = -1 if config.pad_token_id is None else config.pad_token_id
        visible = input_ids != pad if attention_mask is None else attention_mask.bool()
        of_context = torch.zeros_like(visible) if token_type_ids is None else token_type_ids == 1
        text, context = visible & ~of_context, visible & of_context
        if not config.pair and bool(context.any()):
            raise InputError(
                "This BiLSTM reads single texts, but a context was given; build one for pairs (pair=True), "
                "or leave the context out."
            )
        special = torch.tensor(list(config.special_token_ids), dtype=input_ids.dtype, device=input_ids.device)
        return text, context, text & ~torch.isin(input_ids, special)


def _wanted(given: bool | None, default: bool | None) -> bool:
    return bool(default if given is None else given)


def _take(x: Tensor, index: Tensor) -> Tensor:
    """x[b, index[b, i]] for x [B, T, D] and index [B, n]: [B, n, D]."""
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))


def _reversal(count: Tensor, longest: int) -> Tensor:
    """The rows of a flat [n, B] with the first `count` [B] of every column turned round, the others as they are."""
    steps = torch.arange(longest, device=count.device)[:, None]  # [n, 1]
    turned = torch.where(steps < count, count - 1 - steps, steps)  # [n, B]
    return (turned * len(count) + torch.arange(len(count), device=count.device)).flatten()


class _Reordered(torch.autograd.Function):
    """x [n, B, D] in an order [n * B] that undoes itself, so that gradients, of any degree, are reordered alike: whole
    rows are copied, where a gather goes number by number and its gradient adds them up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor) -> Tensor:
        ctx.save_for_backward(order)
        return x.flatten(0, 1).index_select(0, order).view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (order,) = ctx.saved_tensors
        return _Reordered.apply(gradients[0], order), None


def _states(x: Tensor, lstm: nn.LSTM) -> Tensor:
    """The states [n, B, H] of an LSTM, whose batch comes first for those who give it rules of their own: a view."""
    # cuDNN differentiates its LSTM once and only in training mode; explanations differentiate in eval mode,
    # and some training terms twice. PyTorch's own kernels do both.
    refuse = x.is_cuda and torch.is_grad_enabled()
    with torch.backends.cudnn.flags(enabled=False) if refuse else nullcontext():
        return lstm(x.transpose(0, 1))[0].transpose(0, 1)


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
    embedding: Width | None = None,
    hidden: Width = WIDTH,
    attention: Width | None = None,
    vectors: str | None = None,
    vocabulary: Annotated[int, at_least(1)] | None = None,
    lowercase: bool = True,
    min_count: Annotated[int, at_least(1)] = 1,
    multilabel: bool = False,
    seed: Seed = 0,
) -> tuple[BiLSTMForSequenceClassification, PreTrainedTokenizerFast]:
    """An untrained model and its tokenizer for these training examples (Recursive ROAR, table 4).

    The table's rows: standard normal embeddings of 50 for bAbI (our defaults), pretrained ones of 300
    elsewhere: give them as `vectors` (see `veridical.model.vectors`), which also sets their width. The
    attention is as wide as the LSTM (`hidden`) unless it has a width of its own. Words without a vector are
    drawn standard normal; [PAD] and [MASK] start at 0, and [MASK] is trained. With `pair=None` the examples
    decide.
    """
    texts, pair = _texts(examples, pair)
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
        **_classes(labels, multilabel),
    }
    with torch.random.fork_rng(devices=[]):  # weights are drawn on the CPU, whatever device they go to
        torch.default_generator.manual_seed(seed_of("bilstm", seed))
        model = BiLSTMForSequenceClassification(BiLSTMConfig(**settings)).eval()
    with torch.no_grad():
        for word, vector in known.items():
            row = cast(int, tokenizer.convert_tokens_to_ids(word))
            model.embeddings.weight[row] = torch.from_numpy(np.array(vector, dtype=np.float32))
    return model, tokenizer


def _texts(examples: Sequence[Example], pair: bool | None) -> tuple[list[str], bool]:
    """Texts and contexts that a vocabulary is taken from, and whether the model reads contexts."""
    if not examples:
        raise InputError("There are no examples to take a vocabulary from; give the training split.")
    contexts = [example.context for example in examples if example.context is not None]
    if contexts and pair is False:
        raise InputError(f"{len(contexts)} examples have a context, but pair=False; use pair=True, or drop them.")
    return [example.text for example in examples] + contexts, bool(contexts) if pair is None else pair


def _classes(labels: Sequence[str], multilabel: bool) -> dict[str, Any]:
    """What a configuration says of the classes."""
    if not labels:
        raise InputError("There are no labels; give the names of the classes.")
    return {
        "id2label": dict(enumerate(labels)),
        "label2id": {label: i for i, label in enumerate(labels)},
        "problem_type": "multi_label_classification" if multilabel else "single_label_classification",
    }
