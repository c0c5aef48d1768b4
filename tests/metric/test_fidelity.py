"""F-Fidelity against worked cases: rates, expectations over all masks, samples that come near them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goldens import MEASURABLE
from tabled import run, tabled
from veridical.core.seed import generator
from veridical.metric.fidelity import fid_minus, fid_plus, removal_rate


def test_never_more_goes_on_average_than_training_removed() -> None:
    given, expect = MEASURABLE["ffidelity_rate"]["input"], MEASURABLE["ffidelity_rate"]["expect"]
    n = given["tokens"]
    rates = [removal_rate(n, size, given["alpha"], given["beta"]) for size in given["sizes"]]
    assert rates == pytest.approx(expect["rate"])
    gone = [rate * size for rate, size in zip(rates, given["sizes"], strict=True)]
    assert gone == pytest.approx(expect["expected_gone"])


@pytest.mark.parametrize("name", ["ffidelity_four_features_beta_1", "ffidelity_four_features_beta_0.125"])
def test_worked_cases(name: str) -> None:
    given, expect = MEASURABLE[name]["input"], MEASURABLE[name]["expect"]
    values, how = given["values"], {"ratios": (0.5,), "alpha": given["alpha"], "by": "mask"}
    ex = tabled(values, given["scores"])
    assert removal_rate(4, given["k"], given["alpha"], given["beta"]) == expect["rate"]
    for metric, side in ((fid_plus, "fid_plus"), (fid_minus, "fid_minus")):
        score, questions = run(metric(ex, beta=given["beta"], **how), values)
        assert score.value == pytest.approx(expect[side], abs=1e-9)
        assert questions == 4  # all parts of two tokens, the whole text among them
        assert score.error == 0.0
        of_model, _ = run(metric(replace(ex, masks=given["beta"]), **how), values)
        assert of_model.value == score.value
    everything, _ = run(fid_plus(ex, ratios=(0.5,), alpha=1.0, beta=1.0), values)
    assert everything.value == pytest.approx(expect["removed_all_plus"])


def test_samples_come_near_the_expectation() -> None:
    values = generator("fid").random(256).tolist()
    ex = tabled(values, generator("scores").normal(size=8).tolist())
    exact, _ = run(fid_plus(ex, ratios=(0.9,), beta=1.0, samples=1000), values)
    drawn, _ = run(fid_plus(ex, ratios=(0.9,), beta=1.0, samples=200), values)
    assert drawn.error is not None
    assert drawn.error > 0 == exact.error
    assert abs((drawn.value or 0) - (exact.value or 0)) < 4 * drawn.error


def test_labels_are_counted() -> None:
    values = [0.9, 0.4, 0.8, 0.3]  # the first token decides
    top, _ = run(fid_plus(tabled(values, [1, 0]), ratios=(0.5,), beta=1.0, of="label"), values)
    low, _ = run(fid_minus(tabled(values, [1, 0]), ratios=(0.5,), beta=1.0, of="label"), values)
    assert (top.value, low.value) == (0.5, 0.0)
