"""What `veridical train` prints when it is done."""

from __future__ import annotations

import pytest
from accelerate import PartialState

from veridical.cli.train import print_runs
from veridical.training.train import Run


@pytest.mark.parametrize("as_json", [True, False])
def test_one_of_several_processes_prints(as_json, tmp_path, capsys, monkeypatch):
    run = Run(tmp_path, 0, {"test": {"accuracy": 0.75}}, epochs=1, best_epoch=1, seconds=1.0, cut=0)
    print_runs([run], as_json)
    assert str(tmp_path) in capsys.readouterr().out
    monkeypatch.setitem(PartialState._shared_state, "process_index", 1)  # as the second process of a launch has it
    print_runs([run], as_json)
    assert capsys.readouterr().out == ""
