"""Tables over runs: seeds of one model gathered, models tested against each other, three ways to print."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from audit_facts import a_corpus, a_method, a_metric, a_standing, facts, settings
from page_reader import Reader
from scipy import stats

from veridical.audits.compare import compare, model_name, to_csv, to_latex, to_text
from veridical.audits.compare_page import compare_page
from veridical.audits.filing import Evidence, record_of
from veridical.audits.record import AuditSummary, ModelFacts
from veridical.core import store, stored
from veridical.core.errors import InputError
from veridical.core.seed import generator
from veridical.page.words import figure, interval


def run(folder, model, *, shift=0.0, texts=30, seed=0, undefined=0, **changes):
    """A folder such as an audit writes, with one faithfulness metric and one agreement."""
    draw = generator("run", model, seed)
    rows = []
    for text in range(texts):
        for method, strength in (("integrated_gradients", 0.3), ("gradient", 0.0)):
            value = None if text < undefined else float(strength + shift + 0.2 * draw.random())
            rows.append(("home", f"t{text}", method, "", "sufficiency", value))
            rows.append(("home", f"t{text}", method, "permutation", "sufficiency", 9.0))
        rows.append(("home", f"t{text}", "integrated_gradients ~ gradient", "", "agreement", 0.1))
    names = ("corpus", "example", "method", "control", "metric", "value")
    store.write_parquet(folder / "scores.parquet", dict(zip(names, zip(*rows, strict=True), strict=True)))
    summary = facts(
        [a_corpus("home", texts=texts, macro_f1=0.8 + shift)],
        [a_metric("sufficiency"), a_metric("agreement", "agreement")],
        model=ModelFacts(model, "bert", ("negative", "positive"), "single"),
        settings=settings(seed=seed, **changes),
        methods=(a_method("integrated_gradients"), a_method("gradient")),
        ranking=(a_standing("integrated_gradients", net_chance=0.4, n=texts),),
    )
    stored.write(folder / "summary.json", summary)
    return folder


def only(rows, **wanted):
    [row] = [row for row in rows if all(getattr(row, key) == value for key, value in wanted.items())]
    return row


def test_model_names_without_their_seed():
    assert model_name("runs/x/minilm/plain-seed3-7f2c91ab/model") == "runs/x/minilm/plain"
    assert model_name("runs/x/minilm/plain-seed12-7f2c91ab") == "runs/x/minilm/plain"
    assert model_name("a-seed1") == "a"
    assert model_name("runs/mine/seed0") == model_name("runs/mine/seed11/model") == "runs/mine"
    assert model_name("seed3") == "seed3"
    assert model_name("org/seed-model") == "org/seed-model"


def test_one_run_has_intervals_over_its_texts(tmp_path):
    table = compare([run(tmp_path / "a", "bert", undefined=2)])
    assert table.models == ("bert",)
    assert table.tests == ()
    entry = only(table.entries, metric="sufficiency", method="integrated_gradients")
    assert (entry.unit, entry.n, entry.undefined) == ("texts", 28, 2)
    assert entry.low < entry.mean < entry.high
    assert 0.3 < entry.mean < 0.5  # controls are not among the values
    assert not [e for e in table.entries if e.metric == "agreement"]
    whole = only(table.entries, metric="macro_f1")
    assert (whole.method, whole.mean, whole.low, whole.values) == ("", 0.8, None, (0.8,))
    assert only(table.entries, metric="net wins over chance").mean == 0.4
    text = to_text(table)
    assert f"{entry.mean:.3f} [{entry.low:.3f}, {entry.high:.3f}], 2 undefined" in text
    assert "home: net wins over chance" in text
    assert "home: sufficiency, 28 texts\n" in text


def test_seeds_are_gathered_and_need_five_for_an_interval(tmp_path):
    few = [run(tmp_path / f"f{i}", f"m-seed{i}", seed=i) for i in range(3)]
    entry = only(compare(few).entries, metric="sufficiency", method="gradient")
    assert (entry.model, entry.unit, entry.n, len(entry.values)) == ("m", "seeds", 3, 3)
    assert entry.low is entry.high is None
    assert f"({entry.values[0]:.3f} {entry.values[1]:.3f} {entry.values[2]:.3f})" in to_text(compare(few))
    many = few + [run(tmp_path / f"f{i}", f"m-seed{i}", seed=i) for i in range(3, 6)]
    entry = only(compare(many).entries, metric="sufficiency", method="gradient")
    assert entry.low < entry.mean < entry.high
    assert entry.mean == pytest.approx(np.mean(entry.values))


def test_models_are_compared_over_seeds(tmp_path):
    folders = [run(tmp_path / f"a{i}", f"a-seed{i}", seed=i) for i in range(5)]
    folders += [run(tmp_path / f"b{i}", f"b-seed{i}", seed=i, shift=0.2) for i in range(5)]
    table = compare(folders)
    test = only(table.tests, metric="sufficiency", method="gradient")
    a, b = (only(table.entries, metric="sufficiency", method="gradient", model=m).values for m in ("a", "b"))
    assert (test.unit, test.n, test.p_paired) == ("seeds", (5, 5), None)
    assert test.p_rank_sum == pytest.approx(stats.mannwhitneyu(a, b).pvalue)
    assert test.p_t == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)
    assert test.p_holm == pytest.approx(2 * test.p_rank_sum)  # two methods
    assert test.effect == -1.0
    assert test.difference == pytest.approx(np.mean(a) - np.mean(b))
    assert only(table.tests, metric="macro_f1").difference == pytest.approx(-0.2)


def test_single_runs_are_compared_over_texts(tmp_path):
    table = compare([run(tmp_path / "a", "a"), run(tmp_path / "b", "b", shift=0.5)])
    test = only(table.tests, metric="sufficiency", method="gradient")
    assert (test.unit, test.n) == ("texts", (30, 30))
    assert test.p_paired < 0.001
    assert test.p_holm < 0.001
    text = to_text(table)
    assert "* differs from a" in text
    line = next(line for line in text.splitlines() if line.strip().startswith("gradient"))
    assert line.endswith("*")
    assert line.count("*") == 1


def test_what_does_not_compare_is_noted(tmp_path):
    first = run(tmp_path / "a", "a")
    other = run(tmp_path / "b", "b", texts=20, by="mask", seed=4)
    notes = compare([first, other]).notes
    assert notes == (
        "by is 'delete' in a and 'mask' in b: their figures may not compare.",
        "a and b rest on different texts of home.",
        "No explanations are stored in a, b: how alike models explain is not said for what is there.",
        "Plain AOPC (sufficiency) does not compare across models, because the most and the least that any order could "
        "reach differ from model to model, also where it is divided by the fall to the empty text; between models "
        "audit all of them with metrics naopc and the same by, for instance by=mask if one was trained on masks.",
    )
    assert notes[0] in to_text(compare([first, other]))


def test_csv_holds_every_figure_and_test(tmp_path):
    table = compare([run(tmp_path / "a", "a"), run(tmp_path / "b", "b", shift=0.5)])
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert len(rows) == len(table.entries)
    row = next(r for r in rows if (r["model"], r["metric"], r["method"]) == ("b", "sufficiency", "gradient"))
    entry = only(table.entries, model="b", metric="sufficiency", method="gradient")
    assert (float(row["mean"]), float(row["low"])) == (entry.mean, entry.low)
    assert row["better"] == "higher"
    assert next(r for r in rows if r["metric"] == "net wins over chance")["better"] == "higher"
    assert float(row["difference_to_first"]) == pytest.approx(0.5, abs=0.1)
    assert float(row["effect_to_first"]) == 1.0
    first = next(r for r in rows if (r["model"], r["metric"], r["method"]) == ("a", "sufficiency", "gradient"))
    assert first["p_holm_to_first"] == ""


def test_latex_is_escaped_and_balanced(tmp_path):
    table = compare([run(tmp_path / "a", "org/a_model"), run(tmp_path / "b", "b", shift=0.5)])
    text = to_latex(table)
    assert "% needs \\usepackage{booktabs}" in text
    assert r"A: org/a\_model; B: b." in text  # a name that is too long for a column's head is a letter
    assert r"method & A & B \\" in text
    assert r"integrated\_gradients & " in text
    assert "$^*$" in text
    for name in ("table", "tabular"):
        assert (
            text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 3
        )  # of the models, net wins, sufficiency
    rows = [line for line in text.splitlines() if r" \\" in line and r"\multicolumn" not in line]
    assert len(rows) > 5
    assert all(line.count(" & ") == 2 for line in rows)


@pytest.mark.parametrize("models", [1, 3, 6])
def test_latex_fits_a_column(tmp_path, models):
    if (tex := shutil.which("pdflatex")) is None:
        pytest.skip("no TeX is installed; apt-get install texlive-latex-recommended to run this")
    names = [f"{'m' if models < 4 else 'a_rather_long_name_'}{k}" for k in range(models)]
    table = compare([run(tmp_path / name, name, shift=-k, undefined=k) for k, name in enumerate(names)])
    head = r"\documentclass[twocolumn]{article}\usepackage{booktabs}\begin{document}"
    (tmp_path / "paper.tex").write_text(f"{head}\n{to_latex(table)}\n\\end{{document}}\n")
    command = [tex, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    assert (r"\begin{table*}" in to_latex(table)) == (models > 3)


def test_models_have_the_names_that_they_are_given(tmp_path):
    for folder, model in (("a", "runs/x"), ("b", "runs/y"), ("c", "runs/z")):
        run(tmp_path / folder, model)
    table = compare([f"plain={tmp_path / 'a'}", f"plain={tmp_path / 'b'}", tmp_path / "c"])
    assert table.models == ("plain", "runs/z")
    assert only(table.entries, metric="macro_f1", model="plain").values == (0.8, 0.8)
    odd = run(tmp_path / "k=1", "odd")
    assert compare([str(odd)]).models == ("odd",)  # a folder that is there is no name
    with pytest.raises(InputError, match="names no run; write NAME=RUN"):
        compare([f"={tmp_path / 'a'}"])
    with pytest.raises(InputError, match=r"nowhere has no summary.json"):
        compare(["plain=nowhere"])


def test_the_page_has_every_figure_and_test(tmp_path):
    few = [f"<b>few={run(tmp_path / f'f{k}', 'x', shift=-k / 3, undefined=k)}" for k in range(2)]
    table = compare([run(tmp_path / "a", "a", texts=20), *few])
    page = compare_page(table)
    rows = Reader(page).rows()
    assert "<b>" not in page
    entry = only(table.entries, metric="sufficiency", method="gradient", model="a")
    other = only(table.entries, metric="sufficiency", method="gradient", model="<b>few")
    said = f"{figure(entry.mean)} n 20{interval(entry.low, entry.high)}"
    values = " ".join(str(round(value, 3)) for value in other.values)
    assert ("gradient", "", said, f"{figure(other.mean)}* n 2{values}1 undefined") in rows
    assert any(row[:4] == ("gradient", "a", "<b>few", "texts") for row in rows)
    assert all(note in unescape(page) for note in table.notes)
    assert not re.search(r"https?:|\bsrc=", page)


def test_the_audits_own_intervals_are_shown_and_every_figure_has_its_count(tmp_path):
    folder = run(tmp_path / "a", "a")
    summary = stored.read(folder / "summary.json", AuditSummary)
    home = replace(summary.corpora[0], accuracy=0.9, accuracy_low=0.73, accuracy_high=0.98)
    standing = replace(summary.ranking[0], net_chance_low=-1e-17, net_chance_high=0.6)
    stored.write(folder / "summary.json", replace(summary, corpora=(home,), ranking=(standing,)))
    text = to_text(compare([folder]))
    assert "home: accuracy, 30 texts" in text
    assert "0.900 [0.730, 0.980]" in text
    assert "0.400 [0.000, 0.600]" in text
    short = to_text(compare([folder, run(tmp_path / "b", "b", texts=20)]))
    assert re.search(r"gradient .*\], n 30 .*\], n 20", short)


def test_models_on_the_same_texts_are_tested_in_pairs(tmp_path):
    table = compare([run(tmp_path / "a", "a"), run(tmp_path / "b", "b", shift=-0.04)])
    test = only(table.tests, metric="sufficiency", method="gradient")
    assert test.p == test.p_paired != test.p_rank_sum
    family = sorted(t.p_paired for t in table.tests if t.metric == "sufficiency")
    assert min(t.p_holm for t in table.tests if t.metric == "sufficiency") == pytest.approx(min(1.0, 2 * family[0]))
    text = to_text(table)
    assert "(signed rank, paired by text, Holm over the block, p < 0.05)" in text
    assert "Not tested between models: macro_f1, net wins over chance." in text


def test_accuracies_are_tested_by_what_the_records_hold(tmp_path):
    folders = [run(tmp_path / name, name) for name in ("a", "b")]
    for folder, wrong in zip(folders, (0, 12), strict=True):
        summary = replace(stored.read(folder / "summary.json", AuditSummary))
        home = replace(summary.corpora[0], accuracy=1 - wrong / 30, accuracy_low=0.1, accuracy_high=1.0)
        summary = replace(summary, corpora=(home,))
        stored.write(folder / "summary.json", summary)
        right = tuple(k >= wrong for k in range(30))
        evidence = Evidence("home", tuple(f"k{k}" for k in range(30)), right, ())
        stored.write(folder / "record.json", record_of(summary, [evidence], (), ""))
    table = compare(folders)
    test = only(table.tests, metric="accuracy")
    assert test.p == pytest.approx(2 * 0.5**12)  # 12 texts, all for the first: as the sign test has it
    assert only(table.entries, metric="accuracy", model="b").low == 0.1
    assert "different texts" not in " ".join(table.notes)


def test_random_orders_and_oracles_are_no_explanations(tmp_path):
    folder = run(tmp_path / "a", "a")
    columns = store.read_parquet(folder / "scores.parquet").to_pydict()
    columns["method"] = ["random:seed=1" if name == "gradient" else name for name in columns["method"]]
    store.write_parquet(folder / "scores.parquet", columns)
    assert "random" not in to_text(compare([folder]))
    assert "random:seed=1" in to_text(compare([folder], controls=True))


def test_audits_without_a_corpus_in_common_are_refused(tmp_path):
    folders = [run(tmp_path / name, name) for name in ("a", "b")]
    summary = stored.read(folders[1] / "summary.json", AuditSummary)
    stored.write(folders[1] / "summary.json", replace(summary, corpora=(a_corpus("away"),), ranking=()))
    with pytest.raises(InputError, match=r"no corpus in common, so nothing can be compared \(.*home.*away\); audit"):
        compare(folders)


def test_a_plot_without_arguments_has_methods_and_promises_no_interval_that_is_not_there(tmp_path):
    table = compare([run(tmp_path / "a", "a"), run(tmp_path / "b", "b")])
    axes = table.plot()
    assert axes.get_xlabel() == "net wins over chance, home"
    assert "95% interval" in table.plot("sufficiency").get_xlabel()


def test_models_on_the_page_have_colours_and_shapes(tmp_path):
    page = compare_page(compare([run(tmp_path / "a", "a"), run(tmp_path / "b", "b")]))
    assert '<circle class="c0"' in page
    assert '<path class="c1"' in page
    assert ".c1 { --dot: #d55e00; }" in page


def test_mistakes_are_explained(tmp_path):
    with pytest.raises(InputError, match="nothing to compare"):
        compare([])
    with pytest.raises(InputError, match=r"has no summary.json; name a folder that `veridical audit` wrote"):
        compare([tmp_path])
    store.write_json(tmp_path / "summary.json", {})
    with pytest.raises(InputError, match=r"has no scores.parquet"):
        compare([tmp_path])


def test_between_models_the_figures_within_limits_come_first() -> None:
    from veridical.audits.compare import _limited_first

    keys = [("home", "sufficiency", "a"), ("home", "naopc:by=mask", "a"), ("home", "accuracy", "")]
    assert _limited_first(keys) == [keys[1], keys[2], keys[0]]
    assert _limited_first([keys[0], keys[2]]) == [keys[0], keys[2]]


def test_only_what_all_models_were_measured_by_is_to_be_read_between_them() -> None:
    from veridical.audits.compare import _of_areas

    def model(metric: str, by: str = "delete") -> Any:
        there = {("home", "sufficiency", "a"): {}, ("home", metric, "a"): {}}
        return SimpleNamespace(values=there, summary=SimpleNamespace(settings=SimpleNamespace(by=by)))

    plain, masked = model("naopc"), model("naopc:by=mask", "mask")
    keys = [*plain.values, *masked.values]
    (same,) = _of_areas(keys, [plain, plain])
    assert same.endswith("between models read naopc.")
    (other,) = _of_areas(keys, [plain, masked])
    assert "audit all of them with metrics naopc and the same by, for instance by=mask" in other
    (none,) = _of_areas(keys, [plain, model("sparsity")])
    assert none.endswith("audit all of them with metrics naopc.")
    assert _of_areas([("home", "naopc", "a")], [plain, plain]) == []
