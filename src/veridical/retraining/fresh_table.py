"""The table of `fresh`: macro-F1 per corpus, method and objective, as `veridical compare` writes tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations

import numpy as np

from veridical.audits.compare_table import Entry, Table, Test
from veridical.core.statistics import between, estimate, holm

FULL, RANDOM, F1 = "full text", "random", "macro_f1"
Key = tuple[str, str, str]  # corpus, method, objective


def tabulate(values: Mapping[Key, Mapping[int, float | None]], notes: Sequence[str]) -> Table:
    """A figure per corpus, method and objective from its value for every seed, None where it is undefined.

    Intervals are over seeds, from five on; objectives are tested against each other from two seeds on. Random
    rationales are no objective's: they stand in every column and are not tested.
    """
    corpora, methods, objectives = (tuple(dict.fromkeys(key[i] for key in values)) for i in range(3))
    wanted = [(c, m, o) for c in corpora for m in methods for o in objectives if (c, m, o) in values]
    entries = tuple(_entry(key, tuple(values[key].values())) for key in wanted)
    tests = [test for corpus in corpora for test in _tests([e for e in entries if e.corpus == corpus], objectives)]
    return Table(
        models=objectives, entries=entries, tests=tuple(tests), agreements=(), lower=frozenset(), notes=tuple(notes)
    )


def _entry(key: Key, values: tuple[float | None, ...]) -> Entry:
    known = tuple(value for value in values if value is not None)
    corpus, method, objective = key
    return Entry(corpus, F1, method, objective, unit="seeds", values=known, **asdict(estimate(values)))


def _tests(entries: Sequence[Entry], objectives: Sequence[str]) -> list[Test]:
    """Every two objectives on every method of one corpus; Holm's correction is over all of these."""
    values = {(e.method, e.model): np.array(e.values) for e in entries}
    tests = []
    for method in dict.fromkeys(e.method for e in entries if e.method != RANDOM):
        for a, b in combinations(objectives, 2):
            test = between(values.get((method, a), np.array([])), values.get((method, b), np.array([])))
            if test is not None:
                tests.append((method, a, b, test))
    corrected = holm([test.p_rank_sum for _, _, _, test in tests])
    return [
        Test(
            corpus=entries[0].corpus,
            metric=F1,
            method=method,
            a=a,
            b=b,
            unit="seeds",
            p_holm=float(p),
            p_paired=None,
            **asdict(test),
        )
        for (method, a, b, test), p in zip(tests, corrected, strict=True)
    ]
