"""The larger embedded models themselves: a gigabyte through the package index, so only where it is asked for."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import veridical
from tiny import tiny
from veridical.core import assets
from veridical.core.errors import Caution, InputError
from veridical.model import embedded
from veridical.model.names import ENCODERS, insist_on_model, insist_on_trained

TEXT = "A warm, funny film."
LABELS = {"negative": " negative", "positive": " positive"}


def test_every_embedded_model_is_an_asset() -> None:
    assert set(ENCODERS.values()) <= set(assets.ASSETS)
    for name in ("mpnet", "smollm2"):
        for word in ("MB", "GB of memory", "Apache-2.0"):
            assert word in assets.ASSETS[name].notice
    assert "not those that were published" in assets.ASSETS["smollm2"].notice


def test_without_gguf_nothing_is_fetched(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("VERIDICAL_CACHE", str(tmp_path))
    monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(assets, "_download", lambda *given: pytest.fail("fetched in vain"))
    with pytest.raises(InputError, match=r"needs gguf, which is not installed.*veridical\[gguf\]"):
        veridical.load("smollm2", labels=["a", "b"])


@pytest.mark.parametrize("as_run", [True, False])
def test_a_folder_of_an_embedded_models_name_is_not_taken_for_it(tmp_path, monkeypatch, as_run: bool) -> None:
    monkeypatch.chdir(tmp_path)
    veridical.load(*tiny("bert", num_labels=2)).save(tmp_path / ("mpnet/model" if as_run else "mpnet"))
    with pytest.raises(InputError, match=r"there is a folder of that name here; write '\./mpnet' for what is in the"):
        veridical.load("mpnet")
    assert veridical.load("./mpnet").family == "bert"
    assert veridical.load(tmp_path / "mpnet").family == "bert"
    assert insist_on_model("minilm") == "minilm"
    insist_on_trained("mpnet")  # `train --model mpnet --out mpnet` goes on with the same words
    assert insist_on_model("mpnet", start=True) == "mpnet"


@pytest.mark.large
def test_mpnet_is_an_encoder_to_train() -> None:
    clf = veridical.load("mpnet", labels=["a", "b"])
    assert sum(p.numel() for p in clf.model.parameters()) > 109e6
    assert clf.family == "mpnet"
    (found,) = veridical.explain(clf, TEXT, "input_x_gradient")
    assert np.abs(found.scores).sum() > 0


@pytest.mark.large
@pytest.mark.skipif("gguf" not in sys.modules and embedded.importlib.util.find_spec("gguf") is None, reason="no gguf")
def test_smollm2_prompted_knows_a_good_film_from_a_bad_one() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        clf = veridical.load("smollm2", prompt="Review:\n{text}\nSentiment:", labels=LABELS)
    good, bad = veridical.explain(clf, ["I loved every minute of it.", "A boring, ugly waste of time."], "random")
    assert good.probabilities[1] > bad.probabilities[1]
    assert sum(p.numel() for p in clf.model.parameters()) > 134e6
