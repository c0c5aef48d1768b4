"""`veridical doctor`: what is installed here, what is missing, and how to get it.

It looks, fetches nothing, and works where an installation is broken: what cannot be asked is told as a problem.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import typer

from veridical.cli.speech import print_json
from veridical.core import assets, device
from veridical.core.errors import InputError
from veridical.core.options import Json

VARIABLES = (
    *(device.DEVICE, device.BATCH_TOKENS, "VERIDICAL_CACHE", "VERIDICAL_WITH", "HF_HOME", "HF_HUB_OFFLINE"),
    *("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
)
FOR = {  # what an extra is for
    "pos": "veridical pos",
    "gguf": "the embedded decoder smollm2",
    "lora": "veridical train --set train.lora=8",
    "ray": "--engine ray",
    "serve": "veridical serve",
    "tensorboard": "veridical train --report-to tensorboard",
    "dev": "working on Veridical itself",
}
LITTLE = 2e9  # bytes on a disk below which runs may not find room


@dataclass(frozen=True)
class Package:
    """A distribution that is needed, by an extra or always."""

    name: str
    wanted: str
    version: str | None  # None: it is not installed
    fits: bool


@dataclass(frozen=True)
class Extra:
    """Packages for one purpose, that one may do without."""

    name: str
    purpose: str
    installed: bool
    get: str  # the command
    packages: tuple[Package, ...]


@dataclass(frozen=True)
class Devices:
    """Where models can run."""

    names: tuple[str, ...]
    chosen: str  # what is used unless somebody says otherwise
    threads: int


@dataclass(frozen=True)
class Place:
    """A folder that is written to."""

    purpose: str
    path: str
    writable: bool
    free: int | None  # bytes
    size: int | None  # bytes that lie there; None: it is not ours alone to count


@dataclass(frozen=True)
class Asset:
    """Something that is fetched through the package index once."""

    name: str
    about: str
    state: str
    get: str


@dataclass(frozen=True)
class Diagnosis:
    """Everything that `veridical doctor` finds."""

    veridical: str
    python: str
    executable: str
    platform: str
    cores: int
    packages: tuple[Package, ...]
    extras: tuple[Extra, ...]
    devices: Devices | None  # None: torch cannot be imported
    places: tuple[Place, ...]
    assets: tuple[Asset, ...]
    environment: dict[str, str]
    problems: tuple[str, ...]  # a sentence each, with the remedy


def doctor(as_json: Json = False) -> None:
    """Say what is installed here, where models can run, what is missing and how to get it.

    Nothing is fetched. The exit code is 0 whatever is found; --json lists `problems`.

    Example: veridical doctor
    """
    found = diagnose()
    if as_json:
        print_json(found)
    else:
        _print(found)


def diagnose() -> Diagnosis:
    """Look at this machine."""
    problems: list[str] = []
    needed, optional = _requirements()
    devices = _devices(problems)
    cache = _cache(problems)
    places, held = _places(cache), () if cache is None else _assets(cache)
    for package in needed:
        if not package.fits:
            have = f"is {package.version}" if package.version else "is not installed"
            wish = f"{package.name}{package.wanted}"
            problems.append(f"{package.name} {have}; Veridical needs {wish}: run `pip install '{wish}'`.")
    problems += [f"{p.path} ({p.purpose}) cannot be written to; choose another." for p in places if not p.writable]
    for place in places:
        if place.free is not None and place.free < LITTLE:
            problems.append(f"Only {_bytes(place.free)} are free in {place.path} ({place.purpose}); make room.")
    problems += [f"The asset {a.name} is {a.state}; run `{a.get}`." for a in held if a.state.startswith("damaged")]
    return Diagnosis(
        veridical=metadata.version("veridical"),
        python=platform.python_version(),
        executable=sys.executable,
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        cores=os.cpu_count() or 1,
        packages=needed,
        extras=optional,
        devices=devices,
        places=places,
        assets=held,
        environment={name: os.environ[name] for name in VARIABLES if os.environ.get(name)},
        problems=tuple(problems),
    )


# -- packages -----------------------------------------------------------------------------------------------


def _requirements() -> tuple[tuple[Package, ...], tuple[Extra, ...]]:
    """What Veridical's own metadata asks for: always, and for each extra."""
    from packaging.requirements import Requirement

    own = metadata.distribution("veridical")
    wishes = [Requirement(text) for text in own.requires or ()]
    always = tuple(_package(wish) for wish in wishes if wish.marker is None or wish.marker.evaluate({"extra": ""}))
    extras = []
    for name in own.metadata.get_all("Provides-Extra") or ():
        mine = [wish for wish in wishes if wish.marker is not None and wish.marker.evaluate({"extra": name})]
        packages = tuple(_package(wish) for wish in mine if wish.marker and wish.name != "veridical")
        get = "pip install " + " ".join(f"'{p.name}{p.wanted}'" for p in packages if not p.fits)
        there = all(package.fits for package in packages)
        extras.append(Extra(name, FOR.get(name, ""), there, "" if there else get, packages))
    return always, tuple(extras)


def _package(wish: Any) -> Package:
    try:
        version = metadata.version(wish.name)
    except metadata.PackageNotFoundError:
        return Package(wish.name, str(wish.specifier), None, False)
    return Package(wish.name, str(wish.specifier), version, wish.specifier.contains(version, prereleases=True))


# -- the machine --------------------------------------------------------------------------------------------


def _devices(problems: list[str]) -> Devices | None:
    try:
        import torch

        here = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        count = torch.accelerator.device_count() if here is not None else 0
        kinds = [f"{here}:{number}" for number in range(count)]
        chosen = str(device.said_device() or device.device_of())
        return Devices(("cpu", *kinds), chosen, torch.get_num_threads())
    except Exception as problem:  # a broken installation may raise anything
        reason = next(iter(str(problem).splitlines()), type(problem).__name__)
        problems.append(f"No device could be asked for ({reason}); if torch is at fault, install it anew.")
        return None


def _cache(problems: list[str]) -> Path | None:
    try:
        return assets.cache_root()
    except InputError as problem:
        problems.append(str(problem))
        return None


def _places(cache: Path | None) -> tuple[Place, ...]:
    home = Path(os.path.expanduser(os.environ.get("HF_HOME") or "~/.cache/huggingface"))
    return (
        _place("runs and results, by default", Path("runs"), sized=False),
        *([] if cache is None else [_place("assets of Veridical (VERIDICAL_CACHE)", cache, sized=True)]),
        _place("models and data of the hub (HF_HOME)", home, sized=True),
        _place("temporary files (TMPDIR)", Path(tempfile.gettempdir()), sized=False),
    )


def _place(purpose: str, path: Path, *, sized: bool) -> Place:
    """A folder, or where it would be made."""
    path = path.absolute()
    nearest = next(folder for folder in (path, *path.parents) if folder.exists())
    free = shutil.disk_usage(nearest).free
    writable = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    return Place(purpose, str(path), writable, free, _size(path) if sized else None)


def _size(folder: Path) -> int:
    """Bytes of the files in a folder, links not followed."""
    walk = (Path(parent) / name for parent, _, names in os.walk(folder) for name in names)
    return sum(path.lstat().st_size for path in walk if os.path.lexists(path))


def _assets(cache: Path) -> tuple[Asset, ...]:
    states = {name: assets.state(name, cache=cache) for name in assets.ASSETS}
    return tuple(
        Asset(name, assets.ASSETS[name].about, state, "" if state == "there" else f"veridical data fetch {name}")
        for name, state in states.items()
    )


# -- showing ------------------------------------------------------------------------------------------------


def _print(found: Diagnosis) -> None:
    from veridical.core.tables import to_text

    typer.echo(f"veridical {found.veridical}  Python {found.python}  {found.platform}, {found.cores} cores")
    typer.echo(found.executable)
    for title, rows in _sections(found):
        typer.echo(f"\n{title}")
        if rows:
            typer.echo(to_text(rows, right=(), indent="  "))
    typer.echo()
    for problem in found.problems or ("Nothing is missing that Veridical cannot do without.",):
        typer.echo(problem)


def _sections(found: Diagnosis) -> Iterator[tuple[str, Sequence[Sequence[str]]]]:
    yield "Packages", [[p.name, p.version or "missing", "" if p.fits else f"needs {p.wanted}"] for p in found.packages]
    extras = [[e.name, "installed" if e.installed else "not installed", e.purpose, e.get] for e in found.extras]
    yield "Extras", extras
    if found.devices is not None:
        threads = f"{found.devices.threads} threads on the CPU"
        yield "Devices", [[", ".join(found.devices.names), f"used: {found.devices.chosen}", threads]]
    yield "Places", [[p.path, p.purpose, *_room(p)] for p in found.places]
    yield "Fetched once, through the package index", [[a.name, a.state, a.about, a.get] for a in found.assets]
    if found.environment:
        yield "Environment", [[name, value] for name, value in found.environment.items()]


def _room(place: Place) -> tuple[str, str]:
    free = "" if place.free is None else f"{_bytes(place.free)} free"
    held = "" if place.size is None else f"{_bytes(place.size)} there, "
    return held + free, "" if place.writable else "read-only"


def _bytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
