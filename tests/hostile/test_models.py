"""Models that are broken, or not what they say: refused with a sentence, and never explained as if they were whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, BartConfig, T5Config
from typer.testing import CliRunner

import veridical
from tiny import tiny, tiny_tokenizer
from veridical.cli import app as cli
from veridical.core.errors import Caution, InputError
from veridical.core.records import Example
from veridical.model.ask import predict
from veridical.model.load import load

TEXTS = ["the film was not good", "good"]
Change = Callable[[Path], object]
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    model, tokenizer = tiny("bert")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "model"))


def bert() -> tuple[Any, Any]:
    return tiny("bert")


# -- ways to break a folder ---------------------------------------------------------------------------------


def config(**settings: Any) -> Change:
    """config.json with other settings."""

    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | settings))

    return change


def names(*classes: str) -> Change:
    """config.json with classes of these numbers."""
    return config(id2label={number: f"class {number}" for number in classes}, label2id={})


def written(name: str, content: str | bytes) -> Change:
    return lambda folder: (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def cut_off(kept: Callable[[bytes], bytes]) -> Change:
    return lambda folder: (folder / WEIGHTS).write_bytes(kept((folder / WEIGHTS).read_bytes()))


def without(*file_names: str) -> Change:
    return lambda folder: [(folder / name).unlink(missing_ok=True) for name in file_names]


def weights(make: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Change:
    return lambda folder: save_file(make(load_file(folder / WEIGHTS)), folder / WEIGHTS, metadata={"format": "pt"})


def filled(name: str, value: float) -> Change:
    """One entry of one tensor is `value`."""

    def make(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        tensors[name].view(-1)[-1] = value
        return tensors

    return weights(make)


def other_tokenizer(folder: Path) -> None:
    tiny_tokenizer("roberta").save_pretrained(folder)  # 501 tokens for 145 vectors


BIAS, WORDS = "classifier.bias", "bert.embeddings.word_embeddings.weight"
NO_SUCH_SIZE = r"in config.json of .* is {}; it must be at least 1"
NOT_READ = "No classifier could be loaded from"
NO_FIT = "do not fit its config.json"

BROKEN: dict[str, tuple[Change, str]] = {
    # a tokenizer of its own
    "no tokenizer": (without("tokenizer.json", "tokenizer_config.json"), "has no tokenizer of its own"),
    "no vocabulary": (without("tokenizer.json"), NOT_READ),
    "a tokenizer cut off": (written("tokenizer.json", "{"), NOT_READ),
    "an empty tokenizer": (written("tokenizer.json", ""), NOT_READ),
    "a tokenizer's settings are a list": (written("tokenizer_config.json", "[]"), NOT_READ),
    "another model's tokenizer": (other_tokenizer, "has 501 tokens, but the model has vectors for 145"),
    # weights
    "NaN throughout": (weights(lambda t: {k: v * np.nan for k, v in t.items()}), "not finite numbers"),
    "one NaN": (filled(BIAS, np.nan), "classifier.bias of .* not finite numbers"),
    "one infinity": (filled(WORDS, np.inf), "word_embeddings.weight of .* not finite numbers"),
    "one negative infinity": (filled(BIAS, -np.inf), "not finite numbers"),
    "empty weights": (written(WEIGHTS, b""), "The weights of .* cannot be read"),
    "weights cut off": (cut_off(lambda raw: raw[:-1000]), "The weights of .* cannot be read"),
    "weights cut off in the header": (cut_off(lambda raw: raw[:100]), "The weights of .* cannot be read"),
    "garbage": (written(WEIGHTS, b"garbage" * 100), "The weights of .* cannot be read"),
    "a page of an error": (written(WEIGHTS, "<!DOCTYPE html><html>" * 20), "The weights of .* cannot be read"),
    "a pointer": (written(WEIGHTS, "version https://git-lfs.github.com/spec/v1\nsize 3\n"), "cannot be read"),
    "no weights": (without(WEIGHTS), NOT_READ),
    "weights without words": (weights(lambda t: {k: v for k, v in t.items() if k != WORDS}), "are not in the file"),
    "one layer of two": (weights(lambda t: {k: v for k, v in t.items() if "layer.1" not in k}), "are not in the file"),
    "tensors of other names": (weights(lambda t: {f"x.{k}": v for k, v in t.items()}), "are not in the file"),
    "whole numbers": (weights(lambda t: {k: v.to(torch.int8) for k, v in t.items()}), "is of type I8 in model.safe"),
    "yes and no": (weights(lambda t: {k: v > 0 for k, v in t.items()}), "is of type BOOL in model.safetensors"),
    "a pickle by that name": (lambda folder: torch.save({}, folder / WEIGHTS), "The weights of .* cannot be read"),
    "an index of nothing": (
        lambda folder: (folder / WEIGHTS).rename(folder / f"{WEIGHTS}.index.json"),
        NOT_READ,
    ),
    "fewer words": (weights(lambda t: {k: v[:5].clone() if k == WORDS else v for k, v in t.items()}), NO_FIT),
    # weights and configuration do not belong together
    "another family": (config(model_type="roberta"), "are not in the file"),
    "a third family": (config(model_type="distilbert"), "are not in the file"),
    "fewer classes": (names("0", "1"), r"classifier.bias is \[3\] in the file and \[2\] by the configuration"),
    "more classes": (names("0", "1", "2", "3"), r"is \[3\] in the file and \[4\]"),
    "no class names": (config(id2label=None), NO_FIT),
    "an empty list of classes": (config(id2label={}), NO_FIT),
    "num_labels=0": (config(num_labels=0), NO_FIT),
    "more layers": (config(num_hidden_layers=5), "are not in the file"),
    "fewer layers": (config(num_hidden_layers=1), "has no place for bert.encoder.layer.1"),
    "more words": (config(vocab_size=999), NO_FIT),
    "no positions": (config(max_position_embeddings=0), NO_FIT),
    # class names
    "a gap": (names("0", "1", "3"), r"no name for class 2 of 3 \(it has: 0, 1, 3\)"),
    "from 1": (names("1", "2", "3"), "no name for class 0 of 3"),
    "by name": (config(id2label={"a": "0", "b": "1", "c": "2"}), "names of the classes by number"),
    "a list of names": (config(id2label=["a", "b", "c"]), "names of the classes by number"),
    "names as a text": (config(id2label="abc"), "names of the classes by number"),
    "num_labels is a text": (config(num_labels="x"), NOT_READ),
    "an unknown problem": (config(problem_type="nope"), "problem_type in config.json is 'nope'"),
    # settings
    "minus one layer": (config(num_hidden_layers=-1), f"num_hidden_layers {NO_SUCH_SIZE.format(-1)}"),
    "no layer": (config(num_hidden_layers=0), f"num_hidden_layers {NO_SUCH_SIZE.format(0)}"),
    "minus one head": (config(num_attention_heads=-1), f"num_attention_heads {NO_SUCH_SIZE.format(-1)}"),
    "no heads": (config(num_attention_heads=0), f"num_attention_heads {NO_SUCH_SIZE.format(0)}"),
    "heads that do not divide": (config(num_attention_heads=5), NOT_READ),
    "no width": (config(hidden_size=0), f"hidden_size {NO_SUCH_SIZE.format(0)}"),
    "no words": (config(vocab_size=0), f"vocab_size {NO_SUCH_SIZE.format(0)}"),
    "minus one position": (config(max_position_embeddings=-1), NOT_READ),
    "half a layer": (config(num_hidden_layers=1.5), "num_hidden_layers"),
    "layers as a text": (config(num_hidden_layers="two"), "num_hidden_layers"),
    "layers as a list": (config(num_hidden_layers=[2]), "num_hidden_layers"),
    "no number of layers": (config(num_hidden_layers=None), "num_hidden_layers"),
    "width as a text": (config(hidden_size="32"), "hidden_size"),
    "an eps as a text": (config(layer_norm_eps="x"), "layer_norm_eps"),
    "a dropout of 7": (config(hidden_dropout_prob=7), "dropout"),
    "a padding id past the words": (config(pad_token_id=9999), NOT_READ),
    "an unknown precision": (config(dtype="nope"), NOT_READ),
    "an unknown activation": (config(hidden_act="nope"), "hidden_act in config.json of .* is 'nope'"),
    "an activation that is a number": (config(hidden_act=3), "hidden_act"),
    "an unknown attention kernel": (config(attn_implementation="nope"), 'attn_implementation="nope"'),
    "a kernel that is not installed": (config(attn_implementation="flash_attention_2"), "a library that is not inst"),
    "quantised": (
        config(quantization_config={"quant_method": "bitsandbytes", "load_in_8bit": True}),
        "needs a library that is not installed .*bitsandbytes",
    ),
    "quantised otherwise": (config(quantization_config={"quant_method": "gptq", "bits": 4}), "is not installed"),
    "quantised by a text": (config(quantization_config="x"), NOT_READ),
    "an unknown family": (config(model_type="nope"), NOT_READ),
    "a family that is a number": (config(model_type=3), NOT_READ),
    "a list of settings": (written("config.json", "[]"), NOT_READ),
    "settings cut off": (written("config.json", "{"), NOT_READ),
    "no settings": (written("config.json", "{}"), NOT_READ),
    "empty settings": (written("config.json", ""), NOT_READ),
    "settings that are no text": (written("config.json", b"\xff\xfe\x00"), NOT_READ),
    "settings nested 100,000 deep": (written("config.json", '{"a":' + "[" * 100_000), NOT_READ),
}


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")  # of a head without classes
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_folder_is_refused(case: str, copied: Path) -> None:
    change, sentence = BROKEN[case]
    change(copied)
    with pytest.raises(InputError, match=sentence) as refusal:
        load(copied)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("case", ["no tokenizer", "one NaN", "weights cut off", "minus one layer", "a gap"])
def test_the_command_line_says_it_in_a_line(case: str, copied: Path) -> None:
    BROKEN[case][0](copied)
    result = CliRunner().invoke(cli.app, ["explain", str(copied), "--text", "good"], prog_name="veridical")
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_file_in_place_of_a_folder(whole: Path) -> None:
    with pytest.raises(InputError, match="is a file; name the folder"):
        load(whole / "config.json")


def test_a_whole_folder_is_loaded(whole: Path) -> None:
    assert load(whole).trained
    assert load(f"{whole}:layers=1").model.config.num_hidden_layers == 1  # fewer layers, if they are asked for


def test_a_new_head_may_have_another_width_but_not_the_encoder(copied: Path) -> None:
    assert load(copied, labels=["no", "yes"]).labels == ("no", "yes")
    config(vocab_size=999)(copied)
    with pytest.raises(InputError, match=NO_FIT):
        load(copied, labels=["no", "yes"])


# -- objects ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("method", ["gradient", "integrated_gradients:steps=2", "attention", "occlusion", "alti"])
def test_other_precisions_are_computed_in_float32_on_a_copy(precision: torch.dtype, method: str) -> None:
    model, tokenizer = bert()
    model.to(precision)
    with pytest.warns(Caution, match=f"is in {str(precision).removeprefix('torch.')}; a copy of it in float32"):
        clf = load(model, tokenizer)
    plain = load(bert()[0].to(precision).float(), tokenizer)
    assert {weight.dtype for weight in model.parameters()} == {precision}  # the user's stays as it is
    ours, theirs = (veridical.explain(one, TEXTS[0], method)[0].scores for one in (clf, plain))
    np.testing.assert_array_equal(ours, theirs)


def test_tensors_are_explained_in_float32_too() -> None:
    model, tokenizer = bert()
    ids = tokenizer(TEXTS[0], return_tensors="pt")["input_ids"]
    with pytest.warns(Caution, match="is in bfloat16"):
        scores = veridical.attribute(model.bfloat16(), ids, method="gradient")
    assert scores.dtype == torch.float32


def test_an_object_whose_weights_are_not_finite() -> None:
    model, tokenizer = bert()
    torch.nn.init.constant_(model.classifier.bias, np.nan)
    with pytest.raises(InputError, match=r"classifier.bias of .* not finite"):
        load(model, tokenizer)


@pytest.mark.parametrize("value", [np.nan, 3e38], ids=["changed since", "too large"])
@pytest.mark.parametrize("method", ["random", "gradient", "occlusion"])
def test_answers_that_are_not_finite(value: float, method: str) -> None:
    model, tokenizer = bert()
    clf = load(model, tokenizer)
    torch.nn.init.constant_(clf.model.classifier.weight, value)
    calls: dict[str, Callable[[], Any]] = {
        "explain": lambda: veridical.explain(clf, TEXTS, method),
        "evaluate": lambda: veridical.evaluate(clf, TEXTS, method, "decision_flip"),
        "attack": lambda: veridical.attack(clf, [{"text": TEXTS[0], "label": 0}]),
    }
    if method != "random":  # which never looks at the model
        ids = torch.tensor([[2, 30, 31, 3]])
        special = torch.tensor([[1, 0, 0, 1]])
        calls["attribute"] = lambda: veridical.attribute(clf.model, ids, method=method, special_tokens_mask=special)
    for call in calls.values():
        with pytest.raises(InputError, match="answers with logits that are not finite"):
            call()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # torch leaves it to another package
def test_an_object_that_torch_quantised() -> None:
    model, tokenizer = bert()
    quantised = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    with pytest.raises(InputError, match="BertForSequenceClassification is quantised"):
        load(quantised, tokenizer)


def test_an_object_without_numbers() -> None:
    model, tokenizer = bert()
    with pytest.raises(InputError, match="device 'meta'"):
        load(model.to("meta"), tokenizer)


def test_an_object_whose_labels_were_changed() -> None:
    model, tokenizer = bert()
    model.config.id2label = {0: "a", 1: "b"}
    with pytest.raises(InputError, match="gives 3 logits, but its configuration names 2 classes"):
        veridical.explain(load(model, tokenizer), TEXTS, "random")


@pytest.mark.parametrize("number", [145, -1])
def test_ids_past_the_embeddings(number: int) -> None:
    model, tokenizer = bert()
    with pytest.raises(InputError, match=f"the id {number}, but .* has word vectors for 0 to 144"):
        veridical.attribute(model, torch.tensor([[2, number, 3]]), method="random")
    model.config.pad_token_id = number
    with pytest.raises(InputError, match=f"the id {number}, but .* has word vectors for 0 to 144"):
        veridical.explain(load(model, tokenizer), TEXTS, "random")  # the shorter text is padded


SMALL: dict[str, Any] = {
    "vocab_size": 145,
    "d_model": 32,
    "pad_token_id": 0,
    "eos_token_id": 3,
    "decoder_start_token_id": 0,
}
BART: dict[str, Any] = {
    f"{side}_{size}": 2 for side in ("encoder", "decoder") for size in ("layers", "attention_heads", "ffn_dim")
}


@pytest.mark.parametrize("method", ["random", "gradient", "attention", "rollout", "occlusion", "deeplift"])
@pytest.mark.parametrize("family", ["t5", "bart"])
def test_an_encoder_with_a_decoder_is_refused(family: str, method: str) -> None:
    t5 = T5Config(**SMALL, d_kv=16, d_ff=32, num_layers=2, num_heads=2)
    model = AutoModelForSequenceClassification.from_config(t5 if family == "t5" else BartConfig(**SMALL, **BART))
    with pytest.raises(InputError, match=f"{family}\\) looked up its word embeddings"):
        veridical.explain(load(model, tiny_tokenizer("bert")), TEXTS, method)


# -- BigBird as it ships ------------------------------------------------------------------------------------

SPARSE = {"attention_type": "block_sparse", "block_size": 2, "num_random_blocks": 1, "max_position_embeddings": 256}
LONG = " ".join(["the film was not good and the book is bad"] * 5)  # 52 tokens: over (5 + 2) * 2


@pytest.mark.parametrize("given", ["folder", "object"])
def test_a_sparse_bigbird_attends_to_everything(given: str, tmp_path: Path) -> None:
    model, tokenizer = tiny("big_bird", **SPARSE)
    full, _ = tiny("big_bird", **{**SPARSE, "attention_type": "original_full"})
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.warns(Caution, match="loaded with full attention, .* texts of up to 14 tokens"):
        clf = load(tmp_path) if given == "folder" else load(model, tokenizer)
    assert model.config.attention_type == model.base_model.attention_type == "block_sparse"
    expected = load(full, tokenizer)
    examples = [Example("long", LONG), Example("short", TEXTS[1])]
    ours, theirs = (predict(c, c.encode(examples)).logits for c in (clf, expected))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    for method in ("attention", "alti", "gradient"):
        assert np.isfinite(veridical.explain(clf, LONG, method)[0].scores).all()
