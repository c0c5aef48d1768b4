from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from veridical.cli.train import JobOptions
from veridical.core.errors import InputError
from veridical.core.options import options_in, values_in
from veridical.core.settings import build, merge, read_toml
from veridical.training.config import BILSTM, TrainConfig, defaults


@dataclass(frozen=True)
class Inner:
    size: int = 1
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    rate: float | None = None


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "job.toml"
    path.write_text(text)
    return path


def train_job(path: Path | None = None, overrides: list[str] | None = None) -> JobOptions:
    """What `veridical train --config PATH --set OVERRIDE` is asked for."""
    table = merge(read_toml(path) if path else {}, overrides or ())
    return JobOptions(**values_in(options_in(JobOptions), table))


def test_a_file_becomes_frozen_records(tmp_path: Path):
    job = train_job(
        written(
            tmp_path,
            'data = "hutto/amazon"\nseeds = [1, 2]\nlimit = 500\n'
            '[train]\nlr = 3e-5\npatience = 2\nselect = "loss"\nno_decay = ["bias"]\n',
        )
    )
    assert (job.data, job.seeds, job.limit) == ("hutto/amazon", (1, 2), 500)
    assert job.settings() == TrainConfig(lr=3e-5, patience=2, select="loss", no_decay=("bias",))


def test_overrides_win_over_the_file_and_are_read_by_type(tmp_path: Path):
    path = written(tmp_path, "[train]\nlr = 3e-5\nbatch = 8\n")
    job = train_job(path, ["train.lr=1e-3", "seeds=4+5", "train.clip=none", "limit=1e3"])
    assert (job.settings().lr, job.settings().batch, job.settings().clip) == (1e-3, 8, None)
    assert (job.seeds, job.limit) == ((4, 5), 1000)
    assert train_job() == JobOptions()


def test_a_job_starts_from_its_models_own_defaults():
    config = train_job(None, ["model=bilstm:embedding=50", "train.epochs=2"]).settings()
    assert config.optimizer == "amsgrad"
    assert (config.lr, config.weight_decay, config.epochs) == (1e-3, 1e-5, 2)
    assert defaults("bilstm") is BILSTM
    assert defaults("minilm:layers=3") == TrainConfig()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dat = 1", r"no setting 'dat'\. Did you mean 'data'\?"),
        ("[train]\nlearning_rate = 1", r"no setting 'train\.learning_rate'\."),
        ("[train]\nbatchs = 1", r"Did you mean 'train\.batch'\?"),
        ("train = 3", r"train is 3; it is a table: write \[train\]"),
        ("[data]\nname = 1", "data is a table; it takes a value"),
        ("[train]\nepochs = 2.5", r"train\.epochs is 2\.5; it must be a whole number"),
        ('[train]\nselect = "f1"', r"train\.select is 'f1'; allowed: macro_f1, accuracy"),
        ("[train]\nbatch = 0", "batch is 0; it must be at least 1"),
        ("[train]\nwarmup = 1", "warmup is 1; it must be at least 0 and below 1"),
        ("[train]\nclip = 0", "clip is 0; it must be above 0"),
        ("[train]\nthreads = -1", "threads is -1; it must be from 1 to 1,024"),
        ("[train]\nlr = -1", "lr is -1; it must be at least 0"),
        ('[train]\nselect = "last"\npatience = 1', "patience needs a dev score"),
        ("a = ", "is not valid TOML"),
    ],
)
def test_mistakes_in_a_file_are_one_sentence(tmp_path: Path, text: str, said: str):
    with pytest.raises(InputError, match=said):
        train_job(written(tmp_path, text))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("train.lr", "is not key=value"),
        ("=3", "is not key=value"),
        ("train.lr.x=3", "'lr' is a value, not a table"),
        ("train.lr=fast", r"train\.lr is 'fast'; it must be a number"),
    ],
)
def test_mistakes_in_an_override_are_one_sentence(tmp_path: Path, override: str, said: str):
    with pytest.raises(InputError, match=said):
        train_job(written(tmp_path, "[train]\nlr = 1"), [override])


def test_a_missing_file_is_one_sentence(tmp_path: Path):
    with pytest.raises(InputError, match="cannot be read"):
        train_job(tmp_path / "none.toml")


def test_tables_nest_and_fall_back_to_a_base():
    base = Outer(inner=Inner(size=5, names=("a",)), rate=0.5)
    table = {"inner": {"names": ["b", "c"]}}
    assert build(Outer, table, base=base) == Outer(inner=Inner(size=5, names=("b", "c")), rate=0.5)
    assert build(Outer, table) == Outer(inner=Inner(names=("b", "c")))
    merged = merge(table, ["inner.size=3"])
    assert merged == {"inner": {"names": ["b", "c"], "size": "3"}}
    assert table == {"inner": {"names": ["b", "c"]}}
