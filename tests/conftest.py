"""One torch thread per worker (two busy threads on two cores are slower than one), the CPU even where there is more,
and no network but for assets."""

from __future__ import annotations

import os
import signal
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# What is expected was computed on a CPU, and a GPU's last digits differ; tests/device has a device of its own.
if os.environ.setdefault("VERIDICAL_DEVICE", "cpu") == "cpu":
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}
# Processes that tests start find what tests share: toy.py, tiny.py and the like.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))

import hypothesis
import pytest
import torch

# What is started in the background ignores Ctrl-C, and so would all processes that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
torch.set_num_threads(1)
# How long an example takes is the machine's affair: beside other load the same test may take ten times as long.
# The same examples in every run, so that nobody's run fails by chance; HYPOTHESIS_PROFILE=searching draws others.
PATIENT = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("same", derandomize=True, **PATIENT)
hypothesis.settings.register_profile("searching", **PATIENT)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

HERE = Path(__file__).parent
# Rooms whose tests train, start processes or run verbs to their end: `make test-fast` leaves them out.
WHOLE = ("training", "retraining", "probes", "grid", "cli", "hostile", "test_docs.py", "audits/test_audit.py")
WHOLE += ("test_kills.py", "test_breakdowns.py", "device")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(HERE).as_posix().startswith(WHOLE):
            item.add_marker(pytest.mark.whole)
