"""One torch thread per worker (two busy threads on two cores are slower than one), and no network but for assets."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Processes that tests start find what tests share: toy.py, tiny.py and the like.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))

import pytest
import torch

torch.set_num_threads(1)

HERE = Path(__file__).parent
# Rooms whose tests train, start processes or run verbs to their end: `make test-fast` leaves them out.
WHOLE = ("training", "retraining", "probes", "grid", "cli", "hostile", "test_docs.py", "audits/test_audit.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(HERE).as_posix().startswith(WHOLE):
            item.add_marker(pytest.mark.whole)
