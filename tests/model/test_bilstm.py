from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tiny import PAIRS, TEXTS, tiny
from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.model.bilstm import BiLSTM, build, build_tokenizer

STORIES = [Example(f"s{i}", text, i % 2, context=context) for i, (text, context) in enumerate(PAIRS)]
SENTENCES = [Example(f"t{i}", text, i % 2) for i, text in enumerate(TEXTS)]


def encode(tokenizer, pair: bool):
    columns = [list(column) for column in zip(*PAIRS, strict=True)] if pair else [list(TEXTS)]
    return tokenizer(*columns, padding=True, return_tensors="pt")


@pytest.fixture(params=["single", "released", "paper"])
def made(request):
    """A model, its tokenizer, and a padded batch, in every variant of the architecture."""
    pair = request.param != "single"
    config = {"pair_decoder": request.param} if pair else {}
    model, tokenizer = tiny("bilstm", pair=pair, **config)
    return model, tokenizer, encode(tokenizer, pair)


def test_it_is_the_equations(made):
    """Equations 4 and 5 written out for one example, on PyTorch's own bidirectional LSTM."""
    model, _, batch = made
    row = 1
    real = batch["attention_mask"][row].bool()
    ids, types = batch["input_ids"][row][real], batch["token_type_ids"][row][real]

    def states(encoder: BiLSTM, ids: torch.Tensor):
        both = torch.nn.LSTM(24, 16, bidirectional=True)
        own = dict(encoder.rightward.state_dict())
        own |= {f"{k}_reverse": v for k, v in encoder.leftward.state_dict().items()}
        both.load_state_dict(own)
        out, (last, _) = both(model.embeddings.weight[ids])
        return out, last.flatten()

    with torch.no_grad():
        h, _ = states(model.encoder, ids[types == 0])
        energy = h @ model.attention.weight.T + model.attention.bias
        if model.config.pair:
            _, end = states(model.context_encoder, ids[types == 1])
            energy = energy + model.context_attention.weight @ end
        score = torch.tanh(energy) @ model.attention_score.weight[0]
        alpha = score[1:-1].softmax(0)  # neither [CLS] nor the [EOS] or [SEP] that ends the text
        text = alpha @ h[1:-1]
        if model.config.pair and model.config.pair_decoder == "released":
            text = torch.tanh(model.decoder(text) + model.context_decoder(end))
        expected = model.classifier(text)
        out = model(**batch, output_attentions=True)
    torch.testing.assert_close(out.logits[row], expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(out.attentions[0][row, 0, 0, 1 : 1 + len(alpha)], alpha, atol=1e-6, rtol=0)


def test_padding_and_batch_mates_change_nothing(made):
    model, _, batch = made
    with torch.no_grad():
        together = model(**batch).logits
        for row in range(len(together)):
            real = batch["attention_mask"][row].bool()
            alone = model(**{name: value[row : row + 1, real] for name, value in batch.items()}).logits
            torch.testing.assert_close(together[row : row + 1], alone, atol=1e-6, rtol=0)


def test_without_an_attention_mask_padding_is_seen_by_its_id():
    model, tokenizer = tiny("bilstm")
    batch = encode(tokenizer, pair=False)
    with torch.no_grad():
        torch.testing.assert_close(model(batch["input_ids"]).logits, model(**batch).logits)


@settings(max_examples=25, deadline=None)
@given(hide=st.sets(st.integers(0, 11), max_size=11), pair=st.booleans())
def test_a_token_masked_out_is_a_token_deleted(hide, pair):
    model, tokenizer = tiny("bilstm", pair=pair)
    one = tokenizer(*(PAIRS[0] if pair else [TEXTS[2]]), return_tensors="pt")
    keep = torch.ones_like(one["attention_mask"])
    keep[0, [i for i in hide if i < keep.shape[1]]] = 0
    with torch.no_grad():
        masked = model(**{**one, "attention_mask": keep}, output_attentions=True)
        shown = keep[0].bool()
        deleted = model(**{name: value[:, shown] for name, value in one.items()})
    torch.testing.assert_close(masked.logits, deleted.logits, atol=1e-6, rtol=0)
    assert (masked.attentions[0][0, 0, 0, ~shown] == 0).all()


def test_attention_is_a_distribution_over_the_words_of_the_text(made):
    model, _, batch = made
    (attention,) = model(**batch, output_attentions=True).attentions
    b, t = batch["input_ids"].shape
    assert attention.shape == (b, 1, t, t)
    special = torch.isin(batch["input_ids"], torch.tensor(model.config.special_token_ids))
    words = batch["attention_mask"].bool() & (batch["token_type_ids"] == 0) & ~special
    row = attention.mean(1)[:, 0]
    assert (row[~words] == 0).all()
    assert (row[words] > 0).all()
    torch.testing.assert_close(row.sum(-1), torch.ones(b))
    assert (attention == attention[:, :, :1]).all()


def test_nothing_left_to_attend_is_not_nan(made):
    model, tokenizer, _ = made
    empty = tokenizer(*(["", ""] if model.config.pair else [""]), return_tensors="pt")
    model.requires_grad_(True)
    out = model(**empty, output_attentions=True)
    out.logits.sum().backward()
    assert out.logits.isfinite().all()
    assert (out.attentions[0] == 0).all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_mask_and_unknown_words_are_attended():
    model, tokenizer = tiny("bilstm")
    one = tokenizer(f"good {tokenizer.mask_token} zyzzyva", return_tensors="pt")
    assert one["input_ids"][0, 2:4].tolist() == [tokenizer.mask_token_id, tokenizer.unk_token_id]
    (attention,) = model(**one, output_attentions=True).attentions
    assert (attention[0, 0, 0, 1:4] > 0).all()


def test_logits_follow_the_hooked_embeddings(made):
    """The seam: what the embedding module returns is what the whole network reads, context included."""
    model, _, batch = made
    table = model.get_input_embeddings()
    with torch.no_grad():
        expected = model(**batch, output_hidden_states=True)
        handle = table.register_forward_hook(lambda module, args, output: output * 0.5)
        halved = model(**batch, output_hidden_states=True)
        handle.remove()
        table.weight *= 0.5
        scaled = model(**batch)
    torch.testing.assert_close(halved.logits, scaled.logits)
    torch.testing.assert_close(halved.hidden_states[0], expected.hidden_states[0] * 0.5)
    assert (halved.logits - expected.logits).abs().max() > 1e-3


def test_logits_can_be_differentiated_by_the_attention_handed_out(made):
    """And the derivative is that of the attended text: sum over tokens of gradient x state gives it back."""
    model, _, batch = made
    out = model(**batch, output_attentions=True, output_hidden_states=True)
    (gradient,) = torch.autograd.grad(out.logits[:, 0].sum(), out.attentions)
    assert gradient.shape == out.attentions[0].shape
    assert gradient[:, 0, 0].abs().max() > 1e-3
    if not (model.config.pair and model.config.pair_decoder == "released"):
        expected = out.hidden_states[1] @ model.classifier.weight[0]
        torch.testing.assert_close(gradient[:, 0, 0], expected)


def test_what_is_handed_out_changes_neither_logits_nor_gradients(made):
    """To the last bit: training asks for nothing, and then states of padding and context are never put together."""
    model, _, batch = made
    model.requires_grad_(True)

    def run(**wanted: bool) -> list[torch.Tensor]:
        model.zero_grad()
        logits = model(**batch, **wanted).logits
        logits.pow(2).sum().backward()
        return [logits.detach(), *(p.grad.clone() for p in model.parameters())]

    plain = run()
    assert all(part.abs().max() > 0 for part in plain[:2])
    for wanted in ("output_attentions", "output_hidden_states"):
        assert all(torch.equal(a, b) for a, b in zip(plain, run(**{wanted: True}), strict=True))


def test_rows_that_need_no_moving_read_as_those_that_do(made):
    """A batch with a hole in one text is moved together as a whole; the other texts' logits stay as they were."""
    model, _, batch = made
    holed = batch["attention_mask"].clone()
    holed[0, 2] = 0
    with torch.no_grad():
        whole, moved = (model(**{**batch, "attention_mask": mask}).logits for mask in (batch["attention_mask"], holed))
    torch.testing.assert_close(moved[1:], whole[1:], atol=1e-6, rtol=0)
    assert (moved[0] - whole[0]).abs().max() > 1e-5


def test_hidden_states_are_zero_where_nothing_is_read(made):
    model, _, batch = made
    embedded, states = model(**batch, output_hidden_states=True).hidden_states
    b, t = batch["input_ids"].shape
    assert embedded.shape == (b, t, 24)
    assert states.shape == (b, t, 32)
    real = batch["attention_mask"].bool()
    assert (states[~real] == 0).all()
    assert (states[real].abs().sum(-1) > 0).all()


def test_second_derivatives(made):
    """The gradient of a gradient norm equals its finite difference, in double precision."""
    model, _, batch = made
    model = model.double()
    base = model.get_input_embeddings()(batch["input_ids"]).detach()
    direction = torch.randn(base.shape, generator=torch.Generator().manual_seed(1), dtype=base.dtype)

    def gradient_norm(scale: torch.Tensor) -> torch.Tensor:
        point = (base + scale * direction).requires_grad_()
        handle = model.get_input_embeddings().register_forward_hook(lambda module, args, output: point)
        logit = model(**batch).logits[:, 0].sum()
        handle.remove()
        (gradient,) = torch.autograd.grad(logit, point, create_graph=True)
        return gradient.pow(2).sum()

    assert torch.autograd.gradcheck(gradient_norm, torch.zeros((), dtype=torch.float64, requires_grad=True))


def test_saved_and_loaded_through_the_auto_classes_to_the_last_bit(made, tmp_path):
    model, tokenizer, batch = made
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").is_file()
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert type(again) is type(model)
    assert not again.training
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    words = AutoTokenizer.from_pretrained(tmp_path)
    assert words.model_max_length == tokenizer.model_max_length
    for text in TEXTS:
        assert words(text, return_offsets_mapping=True) == tokenizer(text, return_offsets_mapping=True)
    with torch.no_grad():
        assert torch.equal(again(**batch).logits, model(**batch).logits)


def test_the_attention_implementation_can_be_switched_like_any_models(made):
    model, _, batch = made
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    assert len(model(**batch, output_attentions=True).attentions) == 1
    model.set_attn_implementation(before)


def test_tuples_and_losses():
    model, tokenizer = tiny("bilstm")
    batch = encode(tokenizer, pair=False)
    labels = torch.arange(len(TEXTS)) % 3
    loss, logits = model(**batch, labels=labels, return_dict=False)
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(logits, labels))

    many, _ = tiny("bilstm", problem_type="multi_label_classification")
    truth = torch.nn.functional.one_hot(labels, 3).float()
    out = many(**batch, labels=truth)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(out.logits, truth)
    torch.testing.assert_close(out.loss, expected)


def test_a_single_text_model_refuses_a_context():
    model, tokenizer = tiny("bilstm")
    with pytest.raises(InputError, match="pair=True"):
        model(**tokenizer(*PAIRS[0], return_tensors="pt"))


def test_a_pair_model_reads_the_context_and_explains_only_the_text():
    model, tokenizer = tiny("bilstm", pair=True)
    text, context = PAIRS[0]
    with torch.no_grad():
        given = model(**tokenizer(text, context, return_tensors="pt")).logits
        other = model(**tokenizer(text, "Where is the apple?", return_tensors="pt")).logits
        without = model(**tokenizer(text, return_tensors="pt")).logits
    assert (given - other).abs().max() > 1e-3
    assert without.isfinite().all()


def test_words_and_their_offsets():
    tokenizer = build_tokenizer(["It isn't bad: it's GOOD, can't lose!"], lowercase=True)
    text = "It isn't bad: it's  GOOD, can't lose!"
    out = tokenizer(text, return_offsets_mapping=True)
    words = [text[a:b] for a, b in out["offset_mapping"][1:-1]]
    assert words == ["It", "is", "n't", "bad", ":", "it", "'s", "GOOD", ",", "ca", "n't", "lose", "!"]
    assert tokenizer.unk_token_id not in out["input_ids"]
    assert tokenizer.convert_ids_to_tokens(out["input_ids"])[-6:] == [",", "ca", "n't", "lose", "!", "[EOS]"]


def test_case_is_kept_when_asked():
    tokenizer = build_tokenizer(["Good good Isn'T"], lowercase=False)
    assert {"Good", "good", "Is", "n'T"} <= set(tokenizer.get_vocab())
    assert "is" not in tokenizer.get_vocab()


def test_the_vocabulary_is_by_count_then_alphabet_whatever_the_order_of_texts():
    texts = ["b b b a a", "c a d", "d"]
    tokenizer = build_tokenizer(texts, vocabulary=3)
    ranked = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    assert ranked == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[EOS]", "[MASK]", "a", "b", "d"]
    assert build_tokenizer(texts[::-1], vocabulary=3).get_vocab() == tokenizer.get_vocab()
    assert "c" not in build_tokenizer(texts, min_count=2).get_vocab()


def test_pairs_are_told_apart_by_their_segment():
    _, tokenizer = tiny("bilstm")
    out = tokenizer("good", "bad film")
    assert tokenizer.convert_ids_to_tokens(out["input_ids"]) == [
        "[CLS]",
        "good",
        "[SEP]",
        "bad",
        "film",
        "[EOS]",
    ]
    assert out["token_type_ids"] == [0, 0, 0, 1, 1, 1]


def test_build_takes_the_vocabulary_of_texts_and_contexts():
    model, tokenizer = build(STORIES, ["no", "yes"])
    assert model.config.pair
    assert model.config.hidden_size == 128
    assert model.config.embedding_size == 50
    assert model.config.id2label == {0: "no", 1: "yes"}
    assert {"kitchen", "where", "?"} <= set(tokenizer.get_vocab())
    assert model.config.vocab_size == len(tokenizer) == model.embeddings.num_embeddings
    assert not model.training


def test_build_starts_words_standard_normal_and_mask_and_pad_at_zero_and_trains_mask():
    model, tokenizer = build(SENTENCES * 3, ["no", "yes"], embedding=400)
    table = model.embeddings.weight.detach()
    assert (table[[tokenizer.pad_token_id, tokenizer.mask_token_id]] == 0).all()
    words = table[len(tokenizer.all_special_ids) :]
    assert abs(float(words.mean())) < 0.05
    assert abs(float(words.std()) - 1) < 0.05
    one = tokenizer(f"a {tokenizer.mask_token} film", return_tensors="pt")
    model(**one).logits[0, 0].backward()
    assert model.embeddings.weight.grad[tokenizer.mask_token_id].abs().sum() > 0
    assert not model.config.pair


def test_build_repeats_itself_under_a_seed_and_leaves_the_global_generator_alone():
    state = torch.get_rng_state()
    first, second = (build(SENTENCES, ["no", "yes"], hidden=8, seed=3)[0] for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    other = build(SENTENCES, ["no", "yes"], hidden=8, seed=4)[0]
    for name, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[name])
    assert not torch.equal(first.embeddings.weight, other.embeddings.weight)
    assert not torch.equal(first.classifier.weight, other.classifier.weight)


def test_the_attention_is_as_wide_as_the_lstm_unless_it_says_otherwise():
    for wanted, widths in [({}, (128, 128)), ({"hidden": 32}, (32, 32)), ({"hidden": 8, "attention": 16}, (8, 16))]:
        model, _ = build(SENTENCES, ["no", "yes"], **wanted)
        assert (model.config.hidden_size, model.config.attention_size) == widths
        assert model.attention.weight.shape == (widths[1], 2 * widths[0])


def test_build_with_word_vectors(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("good 1 2 3\nnowhere 9 9 9\nfilm -1 0 0.5\n")
    model, tokenizer = build(SENTENCES, ["no", "yes"], vectors=str(file), hidden=8)
    assert model.config.embedding_size == 3
    rows = model.embeddings.weight.detach().numpy()
    ids = tokenizer.convert_tokens_to_ids(["good", "film"])
    np.testing.assert_array_equal(rows[ids], np.array([[1, 2, 3], [-1, 0, 0.5]], dtype=np.float32))
    plain, _ = build(SENTENCES, ["no", "yes"], embedding=3, hidden=8)
    changed = (model.embeddings.weight != plain.embeddings.weight).any(-1)
    assert sorted(changed.nonzero()[:, 0].tolist()) == sorted(ids)
    with pytest.raises(InputError, match="3 wide"):
        build(SENTENCES, ["no", "yes"], vectors=str(file), embedding=50)


def test_build_says_what_kind_of_problem_it_is():
    single, _ = build(SENTENCES, ["a", "b"], hidden=8)
    many, _ = build(SENTENCES, ["a", "b"], hidden=8, multilabel=True)
    assert single.config.problem_type == "single_label_classification"
    assert many.config.problem_type == "multi_label_classification"


@pytest.mark.parametrize(
    ("examples", "labels", "options", "message"),
    [
        ([], ["a", "b"], {}, "no examples"),
        (SENTENCES, [], {}, "no labels"),
        (STORIES, ["a", "b"], {"pair": False}, "pair=False"),
    ],
)
def test_build_refuses(examples, labels, options, message):
    with pytest.raises(InputError, match=message):
        build(examples, labels, **options)


def test_it_learns():
    """A word decides the class: after some steps of AMSGrad the training texts are told apart."""
    texts = [f"{a} {b} film" for a in ("good", "bad") for b in ("a", "the", "this", "that")]
    examples = [Example(str(i), text, int(text.startswith("good"))) for i, text in enumerate(texts)]
    model, tokenizer = build(examples, ["bad", "good"], hidden=16)
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    labels = torch.tensor([example.label for example in examples])
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2, amsgrad=True, weight_decay=1e-5)
    first = model(**batch, labels=labels).loss.item()
    for _ in range(40):
        optimiser.zero_grad()
        loss = model(**batch, labels=labels).loss
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.1 * first
