from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import veridical
from tiny import tiny
from veridical.cli import app as cli
from veridical.explanations.exchange import read_explanations

NAMES = ("negative", "neutral", "positive")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("model")
    network, tokenizer = tiny("bert")
    network.config.id2label = dict(enumerate(NAMES))
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(autouse=True)
def _no_bars():
    """The command line silences other libraries before it imports them; here they have long been imported."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    yield
    logging.enable_progress_bar()


def run(*args: str, code: int = 0, given: str | None = None):
    result = CliRunner().invoke(cli.app, list(map(str, args)), input=given, prog_name="veridical")
    assert result.exit_code == code, result.output
    if code:
        assert "Traceback" not in result.output
    return result


def mistake(*args: str) -> str:
    """What is said on standard error of a mistake: one line."""
    result = run(*args, code=2)
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    return line


def program(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


# -- starting up --------------------------------------------------------------------------------------------

HEAVY = ("torch", "transformers", "datasets", "accelerate", "sklearn", "pyarrow", "numpy")


@pytest.mark.parametrize(
    "args",
    [
        *(["--help"], ["--version"], [], ["explian"], ["explain", "--help"], ["train", "--help"]),
        ["audit", "m", "--data", "planted", "--out", "x", "--limit", "0"],
        ["roar", "--data", "planted", "--out", "x", "--set", "train.rate=1"],
        ["fresh", "--data", "planted", "--out", "x", "--set", "rationale.epochs=0"],
        ["guidance", "--base", "x", "--guided", "a=y", "--data", "planted"],
        ["pos", "a=b", "--data", "planted", "--limit", "many"],
    ],
)
def test_help_and_mistakes_in_options_import_nothing_heavy(args):
    code = f"""
import sys
sys.argv = ["veridical", *{args!r}]
from veridical.cli.app import main
try:
    main()
except SystemExit as end:
    held = [name for name in {HEAVY!r} if name in sys.modules]
    print("HEAVY", held)
"""
    assert "HEAVY []" in program(code).stdout


def test_the_package_imports_nothing_until_a_name_is_used():
    done = program(
        "import sys, veridical\n"
        "assert 'torch' not in sys.modules\n"
        "from veridical.explanations.explain import attributions\n"
        "assert callable(veridical.explain) and callable(veridical.train) and callable(veridical.status)\n"
        "assert set(dir(veridical)) == {*veridical.__all__, '__version__'}\n"
        "assert all(hasattr(veridical, name) for name in veridical.__all__)\n"
        "print(veridical.__version__)"
    )
    assert done.stdout.strip() == veridical.__version__, done.stderr


def test_unknown_names_of_the_package():
    with pytest.raises(AttributeError, match="no attribute 'explian'"):
        _ = veridical.explian  # type: ignore[attr-defined]


def test_without_a_verb_there_is_help():
    assert "Start with `veridical demo`" in run().stdout
    assert "fetch" in run("data").stdout
    assert run("--version").stdout.strip() == f"veridical {veridical.__version__}"


# -- mistakes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["explian", "x"], "No such command 'explian'. Did you mean 'explain'? See `veridical --help`."),
        (
            ["explain", "x", "--methd", "y"],
            "No such option: --methd. Did you mean --method? See `veridical explain --help`.",
        ),
        (["explain"], "veridical explain needs MODEL; see `veridical explain --help`."),
        (
            ["explain", "x", "--limit", "many"],
            "--limit is 'many'; it must be a number.",
        ),
        (
            ["explain", "x", "--level", "letter"],
            "--level is 'letter'; allowed: word, token.",
        ),
        (["data", "shw"], "No such command 'shw'. Did you mean 'show'? See `veridical data --help`."),
    ],
)
def test_what_the_parser_says(args, said):
    assert mistake(*args) == said


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--text", "hi", "--method", "atention"], "Did you mean 'attention'?"),
        (["--text", "hi", "--method", "integrated_gradients:stepz=3"], "Did you mean 'steps'?"),
        (["--text", "hi", "--method", "integrated_gradients:steps=x"], "it must be a number"),
        (["--text", "hi", "--target", "nonsense"], "allowed: predicted, gold, 0 (negative), 1 (neutral)"),
        (["--text", "hi", "--target", "gold"], "has no label"),
        (["--text", " "], "has no text to explain"),
        ([], "There is no text to explain"),
        (["--text", "hi", "--file", "x.txt"], "--text and --file were given together"),
        (["--file", "nowhere.txt"], "nowhere.txt cannot be read (No such file or directory)"),
        (["--data", "planted", "--limit", "-3"], "limit is -3; it must be at least 1"),
        (["--data", "planted", "--split", "tset"], "no split 'tset'"),
        (["--data", "planted", "--context", "why?"], "data brings its own"),
        (["--text", "hi", "--split", "test"], "--split test chooses among the texts of --data, and of --text every"),
        (["--text", "hi", "--limit", "10"], "--limit 10 chooses among the texts of --data, and of --text every"),
        (["--file", "nowhere.txt", "--limit", "3"], "of --file every text is explained; leave it out."),
        (["--data", "plantd"], "Did you mean 'planted'"),
        (["--text", "hi", "--out", "scores.csv"], "neither .parquet nor .jsonl"),
        (["--text", "good film " * 60, "--overlap", "500"], "cannot share 500"),
    ],
)
def test_mistakes_in_explain(model, args, said):
    assert said in mistake("explain", model, *args)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--seed", "x"], "--seed is 'x'"),
        (["--limit", "2.5"], "--limit is '2.5'; it must be a whole number"),
        (["--data", "planted", "--limit", "0"], "limit is 0"),
        (["--data", "nonsense"], "There is no dataset 'nonsense'"),
        (["--data", "planted", "--objective", "nonsense"], "There is no term 'nonsense'"),
        (["--set", "train.lr"], "is not key=value"),
        (["--set", "train.rate=3"], "There is no setting 'train.rate'"),
        (["--set", "train.epochs=0"], "epochs is 0"),
        (["--config", "nowhere.toml"], "nowhere.toml cannot be read"),
    ],
)
def test_mistakes_in_train(args, said):
    assert said in mistake("train", *args)


def test_other_mistakes(tmp_path):
    assert "There is no folder" in mistake("status", tmp_path / "nowhere")
    assert "KIND is 'nonsense'; allowed: methods" in mistake("list", "nonsense")
    assert "holds no model" in mistake("explain", tmp_path, "--text", "hi")


def test_an_interrupt_says_that_work_is_kept(monkeypatch, tmp_path):
    from veridical import status

    def stop(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules[status.__module__], "status", stop)
    result = run("status", tmp_path, code=130)
    assert "run the same command again" in result.stderr


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (ZeroDivisionError("division\nby zero"), "This broke on the way (ZeroDivisionError: division); the same"),
        (OSError(28, "No space left on device", "x"), "This broke on the way (No space left on device: x); the same"),
        (MemoryError(), "The memory was not enough"),
        (RecursionError("too deep."), "(RecursionError: too deep); the same command with --debug shows where."),
    ],
)
def test_a_bug_is_not_dressed_up_as_a_mistake(monkeypatch, tmp_path, problem, sentence):
    from veridical import status

    def broken(folder):
        raise problem

    monkeypatch.setattr(sys.modules[status.__module__], "status", broken)
    for words in (
        ["status", str(tmp_path)],
        ["--debug", "status", str(tmp_path)],
        ["status", "--debug", str(tmp_path)],
    ):
        result = CliRunner().invoke(cli.app, words)
        assert result.exit_code == 1
        *before, last = result.stderr.strip().splitlines()
        assert sentence in last
        assert ("Traceback" in "\n".join(before)) == ("--debug" in words)
        assert bool(before) == ("--debug" in words)


# -- explain ------------------------------------------------------------------------------------------------


def test_explain_shows_highlights(model):
    shown = run("explain", model, "--text", "A good film", "--method", "gradient,occlusion:by=mask").stdout
    assert "gradient explains" in shown
    assert "occlusion:by=mask explains" in shown
    assert "In brackets" in shown  # no colours where nobody could see them
    assert shown.count("film") >= 2


def test_explain_takes_names_with_commas_or_repeated(model):
    args = ("explain", model, "--text", "A good film", "--json")
    together = json.loads(run(*args, "--method", "gradient,attention").stdout)
    apart = json.loads(run(*args, "--method", "gradient", "--method", "attention").stdout)
    assert [row["method"] for row in together] == ["gradient", "attention"]
    assert [row["scores"] for row in together] == [row["scores"] for row in apart]


def test_explain_json_equals_the_library(model):
    text = "The plot was boring, but the acting is good."
    (row,) = json.loads(run("explain", model, "--text", text, "--method", "gradient", "--json").stdout)
    (own,) = veridical.explain(model, text, "gradient")
    assert row["text"] == text
    assert row["tokens"] == list(own.tokens)
    assert row["words"] == text.split()
    assert row["labels"] == list(NAMES)
    assert row["target_name"] == own.label
    assert row["options"] == dict(own.options)
    assert row["scores"] == pytest.approx(own.scores.tolist(), rel=1e-5)
    assert row["word_scores"] == pytest.approx(own.word_scores.tolist(), rel=1e-5)


def test_explain_target_and_context(model):
    args = ("explain", model, "--text", "Mary took the apple.", "--context", "Where is Mary?", "--json")
    (row,) = json.loads(run(*args, "--method", "gradient", "--target", "neutral").stdout)
    assert (row["target"], row["target_name"], row["context"]) == (1, "neutral", "Where is Mary?")
    assert "context: Where is Mary?" in run(*args[:-1]).stdout


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_explain_writes_what_it_says(model, tmp_path, ending):
    out, page = tmp_path / f"scores.{ending}", tmp_path / "deep" / "page.html"
    result = run(
        *("explain", model, "--text", "A good film", "--text", "A <b>bad</b> one"),
        *("--method", "gradient,attention", "--out", out, "--html", page),
    )
    assert result.stdout.split() == [str(page), str(out)]
    assert [row.method for row in read_explanations(out)] == ["gradient", "gradient", "attention", "attention"]
    assert "&lt;b&gt;bad&lt;/b&gt;" in page.read_text()


def test_explain_reads_a_file_and_the_input(model, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("\ufeffA good film\n\nA bad film\n", encoding="utf-8")
    args = ("explain", model, "--method", "gradient", "--json", "--file")
    rows = json.loads(run(*args, file).stdout)
    assert [row["text"] for row in rows] == ["A good film", "A bad film"]
    assert [row["scores"] for row in json.loads(run(*args, "-", given="A good film\nA bad film").stdout)] == [
        row["scores"] for row in rows
    ]
    file.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in mistake(*args, file)
    file.write_text("\n\n")
    assert "holds no text" in mistake(*args, file)


def test_explain_warns_in_one_line_on_standard_error(model):
    result = run("explain", model, "--text", "good film " * 60, "--method", "gradient", "--json")
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("Note: 1 of 1 texts are longer than the 64 tokens")
    json.loads(result.stdout)


def test_explain_windows(model):
    args = ("explain", model, "--text", "good film " * 60, "--method", "gradient", "--overlap", "8", "--json")
    result = run(*args)
    (row,) = json.loads(result.stdout)
    assert sum(row["free"]) == 120
    assert "longer" not in result.stderr


def test_gold_labels_follow_the_names_of_the_classes(model):
    result = run(
        *("explain", model, "--data", "planted:size=20", "--limit", "4", "--method", "gradient"),
        *("--target", "gold", "--json"),
    )
    for row in json.loads(result.stdout):
        # planted calls its classes negative and positive: 0 and 1 there, 0 and 2 in this model.
        assert row["label"] in (0, 2)
        assert row["target"] == row["label"]


def test_labels_that_do_not_match_are_left_out_and_said(model):
    result = run("explain", model, "--data", "babi/1", "--limit", "2", "--method", "gradient", "--json")
    assert "gold labels are left out" in result.stderr
    assert all(row["label"] is None for row in json.loads(result.stdout))


def test_a_real_process_keeps_streams_apart(model):
    done = subprocess.run(
        [*(str(Path(sys.executable).parent / "veridical"), "explain", model, "--json"), "--text", "good " * 80],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 3  # the default methods
    (line,) = done.stderr.strip().splitlines()  # no progress bars, no log lines of other libraries
    assert line.startswith("Note: ")


def test_a_real_process_ends_with_2_on_a_mistake():
    done = subprocess.run(
        [str(Path(sys.executable).parent / "veridical"), "data", "show", "nowhere.csv"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1


# -- the other verbs ----------------------------------------------------------------------------------------


def test_list():
    shown = run("list").stdout
    for name in ("integrated_gradients", "planted", "cross_entropy", "steps=50"):
        assert name in shown
    held = json.loads(run("list", "methods", "--json").stdout)["methods"]
    (found,) = [row for row in held if row["name"] == "integrated_gradients"]
    assert found["options"]["steps"] == 50
    assert found["signed"]
    assert found["needs"] == ["gradient"]


def test_data_list_and_show():
    assert "hutto/movies" in run("data", "list").stdout
    assert {row["name"] for row in json.loads(run("data", "list", "--json").stdout)} >= {"planted", "babi/1"}
    shown = run("data", "show", "planted:size=20", "--examples", "1").stdout
    assert "train" in shown
    assert "negative 10, positive 10" in shown
    about = json.loads(run("data", "show", "planted:size=20", "--json").stdout)
    assert about["splits"]["train"]["n"] == 20


def test_data_fetch_names_what_is_there():
    assert run("data", "fetch", "planted:size=20").stdout.strip() == "planted:size=20: 20 train, 4 dev, 4 test"


def test_train_then_status_then_explain(tmp_path):
    small = ("--data", "planted:size=24", "--model", "bilstm", "--set", "train.epochs=1")
    shown = run("train", *small, "--out", tmp_path / "one").stdout
    assert "macro_f1" in shown
    assert shown.strip().splitlines()[-1] == str(tmp_path / "one")
    runs = json.loads(run("train", *small, "--seed", "0,1", "--out", tmp_path / "two", "--json").stdout)
    assert [held["seed"] for held in runs] == [0, 1]
    found = json.loads(run("status", tmp_path, "--json").stdout)
    assert [held["state"] for held in found] == ["done"] * 3
    assert "done" in run("status", tmp_path).stdout
    assert "gradient explains" in run("explain", tmp_path / "one", "--text", "fine", "--method", "gradient").stdout


def test_flags_win_over_the_configuration_file(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text('data = "planted:size=24"\nmodel = "bilstm"\nseeds = [5]\n[train]\nepochs = 3\n')
    args = ("train", "--config", file, "--set", "train.epochs=1", "--seed", "2", "--out", tmp_path / "run", "--json")
    (held,) = json.loads(run(*args).stdout)
    assert (held["seed"], held["epochs"]) == (2, 1)


def test_status_of_an_empty_folder(tmp_path):
    assert run("status", tmp_path).stdout.strip() == "No runs yet."


def test_a_folder_that_was_not_there_is_said_to_be_made(model, tmp_path):
    asked = ("explain", model, "--text", "good film", "--method", "attention", "--html")
    result = run(*asked, tmp_path / "new" / "page.html")
    assert f"The folder {tmp_path / 'new'} was made for page.html." in result.stderr
    assert "was made" not in run(*asked, tmp_path / "new" / "page.html").stderr
