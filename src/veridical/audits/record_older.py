"""Summaries of audits as earlier versions stored them: each function makes a mapping of one schema one of the next."""

from __future__ import annotations

from typing import Any


def summary_of_schema_1(summary: dict[str, Any]) -> dict[str, Any]:
    """Before 0.2: no truth was null, tests over all methods named no method; at first texts were not hashed, and what
    soft metrics divide by was not kept."""
    return {
        **summary,
        "corpora": [{"hash": None, **corpus} for corpus in summary.get("corpora", ())],
        "cells": [{"small": None, **cell} for cell in summary.get("cells", ())],
        "metric_tests": [{"method": "", **test} for test in summary.get("metric_tests", ())],
        "truth": summary.get("truth") or [],
    }


def summary_of_schema_2(summary: dict[str, Any]) -> dict[str, Any]:
    """At first methods were ranked once, by their mean ranks, and stood on four lists."""
    lists = {
        (verdict["corpus"], method): name
        for verdict in summary.get("verdicts", ())
        for key, name in (("believe", "believe"), ("tied", "open"), ("undecided", "open"), ("avoid", "behind"))
        for method in verdict[key]
    }
    return {
        **summary,
        "metrics": [{**metric, "votes": metric["kind"] == "faithfulness"} for metric in summary.get("metrics", ())],
        "ranking": [
            _standing_of_schema_2(standing, lists.get((standing["corpus"], standing["method"])))
            for standing in summary.get("ranking", ())
        ],
        "verdicts": [_verdict_of_schema_2(verdict) for verdict in summary.get("verdicts", ())],
    }


def _standing_of_schema_2(standing: dict[str, Any], of_list: str | None) -> dict[str, Any]:
    absent = dict.fromkeys(
        ("net_first", "net_first_low", "net_first_high", "net_chance", "net_chance_low", "net_chance_high", "passes")
    )
    return {
        **absent,
        "corpus": standing["corpus"],
        "method": standing["method"],
        "place": standing["place"],
        "list": of_list,
        "clearly": False,
        "n": standing["n"],
        "left": None,
        "by": "",
        "p_behind": None,
        "level": None,
        "better_than_chance": standing["better_than_random"] is True and standing["beats_control"] is not False,
        "p_chance": standing["p_control"],
    }


def _verdict_of_schema_2(verdict: dict[str, Any]) -> dict[str, Any]:
    kept = ("corpus", "believe", "texts", "enough", "sentence", "notes")
    panel = [name for name, weight in verdict["weights"].items() if weight]
    return {
        **{key: verdict[key] for key in kept},
        "as_good": [],
        "open": [*verdict["tied"], *verdict["undecided"]],
        "behind": verdict["avoid"],
        "chance": [],
        "panel": panel,
    }
