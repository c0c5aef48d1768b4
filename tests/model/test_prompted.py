"""A language model with a prompt is a classifier like any other."""

from __future__ import annotations

import functools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)

import veridical
from tiny_families import DECODERS, config_of
from veridical.core.errors import Caution, InputError
from veridical.core.records import Example
from veridical.explanations.explain import attributions
from veridical.model.template import OPENINGS, SAMPLES, boundary, template_of

PROMPT = "Review:\n{text}\nSentiment:"
LABELS = {"bad": " negative", "good": " positive"}
TEXTS = ["A warm, funny film.", "the plot was dull", "Not bad at all!"]
SENTENCES = ["Review:\nthe film was not bad\nSentiment: negative", "Review:\nA warm plot\nSentiment: positive"]
SENTENCES += [" ".join(f"a {opening}" for opening in OPENINGS)]
CHAT = "{% for m in messages %}<|turn|>{{ m['role'] }}\n{{ m['content'] }}\n{% endfor %}<|turn|>assistant\nSentiment:"


@functools.cache
def byte_level(begin: bool = False) -> PreTrainedTokenizerFast:
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=460,
        special_tokens=["<|endoftext|>", "<|begin|>", "<|turn|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(SENTENCES * 20, trainer)
    if begin:
        core.post_processor = processors.TemplateProcessing(
            single="<|begin|> $A <|endoftext|>", special_tokens=[("<|begin|>", 1), ("<|endoftext|>", 0)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token="<|endoftext|>",
        bos_token="<|begin|>",
        chat_template=CHAT,
        model_max_length=64,
    )


def language_model(folder: Path, family: str = "llama", begin: bool = False, **settings: Any) -> Path:
    tokenizer = byte_level(begin)
    small = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "intermediate_size": 48,
        "max_position_embeddings": 64,
        "pad_token_id": None,
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config_of(family, tokenizer, small, settings)).float()
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight += (0.2 if weight.ndim == 1 else 0.3) * torch.randn(weight.shape) * ("lm_head.bias" not in name)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def llama(tmp_path_factory) -> Path:
    return language_model(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def clf(llama) -> Any:
    return load(llama)


def load(folder: Path, **how: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)  # of a boundary: this tokenizer knows few words
        return veridical.load(str(folder), **{"prompt": PROMPT, "labels": LABELS, **how})


def due(folder: Path, texts: list[str], prompt: str = PROMPT, begin: bool = False) -> np.ndarray:
    """What the language model says of the labels behind each whole text. [n, 2]"""
    tokenizer, rows = byte_level(begin), []
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    words = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in LABELS.values()]
    assert all(len(word) == 1 for word in words)
    for text in texts:
        ids = tokenizer(prompt.replace("{text}", text), add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([[1, *ids] if begin else ids])).logits[0, -1]
        rows.append(logits[[word[0] for word in words]].softmax(-1).numpy())
    return np.stack(rows)


def answers(clf: Any, texts: list[str]) -> np.ndarray:
    return np.stack([e.probabilities for e in veridical.explain(clf, texts, "random")])


@pytest.mark.parametrize("family", [family for family in DECODERS if family not in ("gemma2", "gemma3_text")])
def test_it_says_what_the_language_model_says(tmp_path, family: str) -> None:
    folder = language_model(tmp_path, family)
    np.testing.assert_allclose(answers(load(folder), TEXTS), due(folder, TEXTS), atol=1e-5)


def test_what_the_tokenizer_puts_first_stays_and_what_it_puts_last_goes(tmp_path) -> None:
    folder = language_model(tmp_path, begin=True)
    np.testing.assert_allclose(answers(load(folder), TEXTS), due(folder, TEXTS, begin=True), atol=1e-5)


def test_saved_it_is_an_ordinary_classifier(tmp_path, clf) -> None:
    clf.save(tmp_path / "saved")
    again = veridical.load(str(tmp_path / "saved"))
    assert again.labels == ("bad", "good")
    assert answers(again, TEXTS).tolist() == answers(clf, TEXTS).tolist()
    said = json.loads((tmp_path / "saved" / "config.json").read_text())["veridical_prompt"]
    assert said == {"prompt": PROMPT, "labels": LABELS, "chat": False}
    # And so it is for those who have transformers alone.
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved").eval()
    batch = AutoTokenizer.from_pretrained(tmp_path / "saved")(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        theirs = model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits.softmax(-1).numpy()
    np.testing.assert_allclose(theirs, answers(clf, TEXTS), atol=1e-6)


def test_only_the_text_is_explained_erased_and_cut(clf) -> None:
    (encoded,) = clf.encode([Example("1", TEXTS[0])])
    free = [i for i, is_free in enumerate(encoded.free) if is_free]
    alone = byte_level()(TEXTS[0], add_special_tokens=False)["input_ids"]
    assert [encoded.ids[i] for i in free] == alone
    assert "".join(TEXTS[0][slice(*encoded.spans[i])] for i in free) == TEXTS[0].replace(" ", "")
    assert not encoded.free[0]
    assert not encoded.free[-1]  # the token that is read
    (long,) = clf.encode([Example("1", "film " * 200)])
    assert len(long.ids) == clf.limit
    assert long.ids[-3:] == encoded.ids[-3:]
    for name in ("occlusion", "integrated_gradients:steps=4", "attnlrp", "lime:samples=20"):
        (found,) = veridical.explain(clf, TEXTS[0], name)
        assert np.abs(found.scores[free]).sum() > 0
        assert not found.scores[[i for i in range(len(encoded.ids)) if i not in free]].any()


def test_a_logit_is_the_lead_over_the_mean_of_the_labels(clf) -> None:
    with torch.no_grad():
        logits = clf.forward(clf.collate(clf.encode([Example("1", TEXTS[0])]))).logits
    assert float(logits.sum()) == pytest.approx(0, abs=1e-5)


def test_audits_metrics_and_files_take_it(tmp_path, clf) -> None:
    examples = [Example(str(i), text, i % 2) for i, text in enumerate(TEXTS)]
    found = veridical.evaluate(clf, examples, ["occlusion", "random"], ["sufficiency", "decision_flip"])
    assert len(found.cells) == 2 * 2 * 3
    path = veridical.write_explanations(tmp_path / "e.jsonl", veridical.explain(clf, examples, "occlusion"))
    back = veridical.to_attributions(clf, veridical.read_explanations(path), examples)
    ours = attributions(clf, clf.encode(examples), veridical.attribution.methods.choose("occlusion"))
    for one, other in zip(back, ours, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)


def test_a_chat_is_the_users_turn(llama) -> None:
    for prompt in ("{text}\nIs it good?", "Is it good?\n{text}"):
        written = f"<|turn|>user\n{prompt}\n<|turn|>assistant\nSentiment:"
        clf = load(llama, prompt=prompt, chat=True)
        np.testing.assert_allclose(answers(clf, TEXTS), due(llama, TEXTS, written), atol=1e-5)


def test_the_boundary_is_tried(llama) -> None:
    tokenizer = byte_level()
    apart = template_of(tokenizer, "Review: {text}\nSentiment:", LABELS)
    assert boundary(tokenizer, apart) < 0.2
    assert boundary(tokenizer, template_of(tokenizer, PROMPT, LABELS), SAMPLES) > 0.9
    with pytest.warns(Caution, match="make other tokens together than apart"):
        veridical.load(str(llama), prompt="Review: {text}\nSentiment:", labels=LABELS)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"prompt": "no place"}, "in which {text} stands once"),
        ({"prompt": "{text} and {text}:"}, "in which {text} stands once"),
        ({"prompt": "Review: {text}"}, "nothing follows {text}"),
        ({"labels": ["bad", "good"]}, "must name the word that stands for every class"),
        ({"labels": {"bad": " negative"}}, "must name the word"),
        ({"labels": {"bad": " negative", "good": " splendid"}}, "only one token is a class"),
        ({"labels": {"bad": " negative", "good": " negative"}}, "are both ' negative'; every class needs a word of"),
        ({"prompt": "{text} <|endoftext|>", "labels": {"bad": "a", "good": "b"}}, "ends in the token that pads"),
    ],
)
def test_what_cannot_be_a_prompt_is_refused(llama, how: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said.replace("{", r"\{").replace("}", r"\}")):
        load(llama, **how)


def test_equal_words_are_refused_before_anything_is_loaded() -> None:
    with pytest.raises(InputError, match="The labels of 'bad' and 'good' are both ' negative'"):
        load(Path("no-such-model"), labels={"bad": " negative", "good": " negative"})


def test_words_that_differ_and_are_one_token_are_refused() -> None:
    core = Tokenizer.from_str(byte_level().backend_tokenizer.to_str())
    core.normalizer = normalizers.Lowercase()
    lowering = PreTrainedTokenizerFast(tokenizer_object=core)
    prompt = PROMPT.lower()
    assert len(set(template_of(lowering, prompt, LABELS).labels)) == 2
    with pytest.raises(InputError, match="The labels of 'bad' and 'good' are the same token"):
        template_of(lowering, prompt, {"bad": " negative", "good": " Negative"})


def test_models_that_are_no_language_models_are_refused(tmp_path, llama, clf) -> None:
    from tiny import tiny

    model, tokenizer = tiny("bert")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="is no causal language model"):
        load(tmp_path)
    with pytest.raises(InputError, match="name it instead"):
        veridical.load(clf, prompt=PROMPT, labels=LABELS)
    with pytest.raises(InputError, match="chat is of a prompt"):
        veridical.load(str(llama), chat=True)
    with pytest.raises(InputError, match="no place for a context"):
        veridical.explain(clf, ("text", "context"), "random")


def test_a_classifier_without_the_language_models_head_is_refused(tmp_path, llama) -> None:
    head = AutoModelForSequenceClassification.from_pretrained(llama, num_labels=2, tie_word_embeddings=False)
    head.save_pretrained(tmp_path)
    byte_level().save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"holds no language model: lm_head\.weight is not among its weights"):
        load(tmp_path)


def test_a_prompt_goes_around_no_other(tmp_path, clf) -> None:
    clf.save(tmp_path)
    with pytest.raises(
        InputError, match=r"has a prompt already \('Review:.*name the language model that it was made of"
    ):
        load(tmp_path, prompt="Tweet:\n{text}\nMood:")


def test_several_classes_of_a_text_and_prompts_without_room_are_refused(llama) -> None:
    with pytest.raises(InputError, match="leave multilabel out"):
        load(llama, multilabel=True)
    with pytest.raises(
        InputError, match=r"The prompt has \d+ tokens, and .* reads 64, which leaves no room for a text"
    ):
        load(llama, prompt="Review: " * 40 + "\n{text}\nSentiment:")


def test_trained_on_it_starts_as_it_is_whatever_the_order_of_its_classes(tmp_path, clf) -> None:
    clf.save(tmp_path)
    turned = veridical.load(str(tmp_path), labels=["good", "bad"])
    assert turned.labels == ("good", "bad")
    assert turned.trained
    np.testing.assert_allclose(answers(turned, TEXTS), answers(clf, TEXTS)[:, ::-1], atol=1e-6)
    others = veridical.load(str(tmp_path), labels=["sad", "glad"])
    assert not others.trained
    assert np.abs(answers(others, TEXTS) - answers(clf, TEXTS)).max() > 1e-3
    again = veridical.load(str(tmp_path), labels=["sad", "glad"])
    assert np.array_equal(answers(others, TEXTS), answers(again, TEXTS))  # by the seed


def test_logits_that_are_altered_behind_the_head_are_refused(tmp_path) -> None:
    language_model(tmp_path / "gemma2", "gemma2")
    with pytest.raises(InputError, match="final_logit_softcapping"):
        load(tmp_path / "gemma2")
    folder = language_model(tmp_path / "phi", "phi")
    model = AutoModelForCausalLM.from_pretrained(folder)
    torch.nn.init.ones_(model.lm_head.bias)
    model.save_pretrained(folder)
    with pytest.raises(InputError, match="has a bias"):
        load(folder)


def test_the_command_writes_the_folder(tmp_path, llama) -> None:
    from typer.testing import CliRunner

    from veridical.cli.app import app

    rows = [json.dumps({"text": text, "label": name}) for text, name in zip(TEXTS, ("bad", "good", "bad"), strict=True)]
    (tmp_path / "texts.jsonl").write_text("\n".join(rows))
    words = ["prompt", str(llama), "--prompt", "Review:\\n{text}\\nSentiment:", "--out", str(tmp_path / "out")]
    words += ["--labels", "bad= negative", "--labels", "good= positive"]
    data = ["--data", str(tmp_path / "texts.jsonl"), "--split", "test"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        done = CliRunner().invoke(app, [*words, *data])
    assert done.exit_code == 0, done.output
    again = veridical.load(str(tmp_path / "out"))
    assert again.model.config.veridical_prompt["prompt"] == PROMPT
    right = (answers(again, TEXTS).argmax(-1) == [0, 1, 0]).mean()
    assert f"accuracy {right:.3f}" in done.output
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".tmp")]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert "is there already" in refused.output
    strange = [*words[:5], str(tmp_path / "other"), "--labels", "n= negative", "--labels", "p= positive", *data]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        refused = CliRunner().invoke(app, strange)
    assert refused.exit_code == 2
    assert "call the labels as the data does, or leave --data out" in " ".join(refused.output.split())
    refused = CliRunner().invoke(app, [*words[:6], "--labels", "bad"])
    assert refused.exit_code == 2
    assert "write NAME=WORD" in refused.output
