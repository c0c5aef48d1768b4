"""Figures that were computed independently or by the authors' own code, by name."""

from __future__ import annotations

import json
from pathlib import Path

GOLDEN = {case["name"]: case for case in json.loads((Path(__file__).parent / "golden/metrics.json").read_text("utf-8"))}
MEASURABLE = {
    case["name"]: case
    for case in json.loads((Path(__file__).parent / "golden/measurable.json").read_text("utf-8"))["cases"]
}
