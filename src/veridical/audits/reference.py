"""Methods beside the best order that was found: a reference like the oracle, made from what metrics measure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from veridical.audits.plan import ORDERS, is_reference
from veridical.audits.record import MetricFacts
from veridical.audits.record_erased import BestShare
from veridical.audits.sheet import Sheet

EQUAL = 1e-9  # a way this short has no shares


def best_shares(sheet: Sheet, facts: Mapping[str, MetricFacts]) -> list[BestShare]:
    """Every method's share of the way from random to best, by every metric of faithfulness, on the texts that all three
    have scores of."""
    row = {name: m for m, name in enumerate(sheet.methods)}
    orders = [row[name] for name in ORDERS if name in row]
    shares = []
    for best in (name for name in sheet.methods if is_reference(name)):
        for k, metric in enumerate(sheet.metrics):
            if facts[metric].kind == "faithfulness" and orders:
                values = sheet.values[""][:, k]  # [M, N]
                random = values[orders].mean(0)
                for method in sheet.methods:
                    if not is_reference(method) and method not in ORDERS:
                        ways = np.stack([values[row[method]] - random, values[row[best]] - random])
                        shares.append(_share((sheet.corpus, method, metric), best, ways[:, ~np.isnan(ways).any(0)]))
    return shares


def _share(of: tuple[str, str, str], best: str, ways: np.ndarray) -> BestShare:
    """From the gains over random of the method and of the best. [2, n]"""
    n = ways.shape[1]
    gained, whole = ways.mean(1) if n else (0.0, 0.0)
    return BestShare(*of, float(gained / whole) if abs(whole) > EQUAL else None, n, best)
