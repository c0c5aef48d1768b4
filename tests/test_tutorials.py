"""The tutorials: what is stored is whole and names no machine, and they run and find what their text says."""

from __future__ import annotations

import copy
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
ABSOLUTE = re.compile(r"(?:^|[\s\"'(=])(/(?:home|root|tmp|usr|var|opt|mnt|private|Users)/|[A-Z]:\\\\)", re.MULTILINE)
LARGEST = 150_000  # bytes

# What the text of each rests on, as an expression that its kernel is asked for at the end.
ASKED = {
    "audit-your-model": """{
        "accuracy": run.scores["test"]["accuracy"],
        "verdict": audit.verdict,
        "believed": audit.summary.verdicts[0].believe,
        "scored": {method: scored.estimates["sufficiency", method].mean for method in ("occlusion", "random")},
        "flagged": repr(relied),
        "page": audit.page.is_file(),
    }""",
    "train-for-faithful-explanations": """{
        "plain": [runs["plain", seed].scores["test"]["accuracy"] for seed in (0, 1, 2)],
        "guided": [runs["guided", seed].scores["test"]["accuracy"] for seed in (0, 1, 2)],
        "righted": len(righted),
        "models": table.models,
        "verdict": answer.verdict,
        "page": answer.page.is_file(),
    }""",
    "test-by-retraining": """{
        "amounts": curves.index.tolist(),
        "random": curves["random"].tolist(),
        "oracle": curves["oracle"].tolist(),
        "taken": taken.to_dict(),
        "answer": found.summary.answer,
        "page": found.page.is_file(),
    }""",
}


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]


def strings(held: Any) -> list[str]:
    """Every string in it that a reader may see; pictures are left out."""
    if isinstance(held, dict):
        return [text for key, value in held.items() if key != "image/png" for text in strings(value)]
    if isinstance(held, list):
        if all(isinstance(one, str) for one in held):
            return ["".join(held)]
        return [text for value in held for text in strings(value)]
    return [held] if isinstance(held, str) else []


def test_there_is_a_question_for_every_tutorial():
    assert {path.stem for path in NOTEBOOKS} == set(ASKED)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_compiles_and_was_run_in_its_turn(path):
    cells = code_cells(path)
    for cell in cells:
        compile("".join(cell["source"]), path.name, "exec")
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "run docs/tutorials.py"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_is_small_and_names_no_machine(path):
    assert path.stat().st_size < LARGEST
    outputs = [output for cell in code_cells(path) for output in cell["outputs"]]
    assert outputs
    for output in outputs:
        assert output["output_type"] in ("stream", "execute_result", "display_data")
        assert output.get("name") != "stderr"
        assert output["output_type"] != "display_data" or "image/png" in output["data"], "a bar: run docs/tutorials.py"
    for text in strings(read(path)):
        assert not ABSOLUTE.search(text), ABSOLUTE.search(text)


@pytest.mark.parametrize("text", ["report /home/me/x", '<a href="/tmp/x">', "in C:\\\\Users"])
def test_an_absolute_path_is_seen(text):
    assert ABSOLUTE.search(text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_links_lead_somewhere_and_the_index_leads_to_it(path):
    told = "\n".join("".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == "markdown")
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", told)
    assert links
    assert not [link for link in links if not (path.parent / link).exists()]
    for page, link in (("docs/index.md", f"(tutorials/{path.name})"), ("README.md", f"(docs/tutorials/{path.name})")):
        assert link in (ROOT / page).read_text(encoding="utf-8")


def test_bars_and_warnings_are_not_stored():
    nbformat = pytest.importorskip("nbformat", reason="nbformat comes with nbclient, which the extra dev brings")
    v4 = nbformat.v4
    outputs = [
        v4.new_output("stream", name="stderr", text="a warning"),
        v4.new_output("stream", name="stdout", text="a line"),
        v4.new_output("display_data", data={"text/html": "<progress>"}),
        v4.new_output("display_data", data={"image/png": "AAAA"}),
        v4.new_output("execute_result", data={"text/plain": "a result"}),
    ]
    cell = v4.new_code_cell("1", outputs=copy.deepcopy(outputs))
    kept = runpy.run_path(str(ROOT / "docs/tutorials.py"))["tidy"](v4.new_notebook(cells=[cell])).cells[0].outputs
    assert kept == [outputs[1], outputs[3], outputs[4]]


def answered(name: str, folder: Path) -> dict[str, Any]:
    """What the tutorial's kernel says at the end of it; an error in any cell is raised."""
    import nbformat

    script = runpy.run_path(str(ROOT / "docs/tutorials.py"))
    notebook = nbformat.read(script["FOLDER"] / f"{name}.ipynb", as_version=4)
    asked = f"import json\nprint(json.dumps({ASKED[name]}))"
    notebook.cells.append(nbformat.v4.new_code_cell(asked))
    done = script["tidy"](script["execute"](notebook, folder))
    assert not ABSOLUTE.search("\n".join(strings([cell.get("outputs", []) for cell in done.cells])))
    return json.loads(done.cells[-1].outputs[0].text)


@pytest.mark.notebooks
def test_audit_your_model(tmp_path):
    said = answered("audit-your-model", tmp_path)
    assert said["accuracy"] > 0.75
    assert said["verdict"].startswith("For this model on this data believe")
    assert said["believed"]
    assert said["scored"]["occlusion"] > said["scored"]["random"] + 0.2
    assert "`empty`" in said["flagged"]
    assert "`crowded`" in said["flagged"]
    assert said["page"]
    assert [path.name for path in tmp_path.iterdir()] == ["tutorial-audit"]


@pytest.mark.notebooks
def test_train_for_faithful_explanations(tmp_path):
    said = answered("train-for-faithful-explanations", tmp_path)
    assert min(said["plain"]) > 0.75
    assert sum(said["guided"]) / 3 > sum(said["plain"]) / 3 + 0.03
    assert said["righted"] > 0
    assert said["models"] == ["plain", "guided"]
    assert said["verdict"].endswith("it changed what the model relies on.")
    assert said["page"]
    assert [path.name for path in tmp_path.iterdir()] == ["tutorial-training"]


@pytest.mark.notebooks
def test_test_by_retraining(tmp_path):
    said = answered("test-by-retraining", tmp_path)
    assert said["amounts"] == [0, 25, 50, 75, 100]
    assert said["random"][0] == said["oracle"][0] > 0.85
    assert said["oracle"][1] < 0.65
    assert said["random"][1] > 0.8
    assert said["taken"]["random"] == 0
    assert said["taken"]["oracle"] > 0.2
    assert "oracle" in said["answer"]
    assert said["page"]
    assert [path.name for path in tmp_path.iterdir()] == ["tutorial-retraining"]
