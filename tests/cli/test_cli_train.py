"""What `veridical train` prints when it is done."""

from __future__ import annotations

import pytest
from accelerate import PartialState

from toy import toy
from veridical.cli.train import guesses, print_runs
from veridical.training.train import Run


@pytest.mark.parametrize("as_json", [True, False])
def test_one_of_several_processes_prints(as_json, tmp_path, capsys, monkeypatch):
    run = Run(tmp_path, 0, {"test": {"accuracy": 0.75}}, epochs=1, best_epoch=1, seconds=1.0, cut=0)
    print_runs([run], as_json)
    assert str(tmp_path) in capsys.readouterr().out
    monkeypatch.setitem(PartialState._shared_state, "process_index", 1)  # as the second process of a launch has it
    print_runs([run], as_json)
    assert capsys.readouterr().out == ""


def test_a_run_that_may_be_guessing_is_said_to_be(tmp_path):
    data = toy()
    texts = data.splits["test"]
    majority = max(sum(e.label == label for e in texts) for label in range(len(data.labels))) / len(texts)
    runs = [
        Run(tmp_path, seed, {"test": {"accuracy": accuracy}}, epochs=1, best_epoch=1, seconds=1.0, cut={})
        for seed, accuracy in enumerate((majority, 1.0))
    ]
    (note,) = guesses(runs, data)
    assert note.startswith(f"seed 0 is right on {majority:.0%} of the {len(texts)} test texts (95% interval ")
    assert f"most frequent class would be on {majority:.0%}" in note
    print_runs(runs[:1], False, [note])
