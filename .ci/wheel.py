"""Look through the wheel and the sdist that `make wheel` built, and run the demo from the wheel.

The wheel has every file of src/veridical, templates and styles included, and nothing else. The demo runs in an empty
environment into which only the wheel is installed; what it depends on is read from this one, so nothing is fetched.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DEMO = ("demo", "--data", "planted", "--model", "bilstm", "--out", "demo")


def sources() -> set[str]:
    """What has to be in the wheel."""
    src = ROOT / "src"
    files = (path for path in (src / "veridical").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(src).as_posix() for path in files}


def differences(wheel: Path) -> list[str]:
    """What the wheel lacks, and what it should not have."""
    with zipfile.ZipFile(wheel) as held:
        names = set(held.namelist())
    inside = {name for name in names if ".dist-info/" not in name}
    needed = {"METADATA", "entry_points.txt", "licenses/LICENSE"}
    facts = {name.partition(".dist-info/")[2] for name in names - inside}
    lacking = sorted({*(sources() - inside), *(needed - facts)})
    return [f"lacks {name}" for name in lacking] + [f"holds {name}" for name in sorted(inside - sources())]


def strangers(sdist: Path) -> list[str]:
    """The same of the sdist: it has the sources and the recipes, and nothing of the tests."""
    with tarfile.open(sdist) as held:
        names = {name.partition("/")[2] for name in held.getnames()}
    needed = {f"src/{name}" for name in sources()} | {"pyproject.toml", "README.md", "LICENSE"}
    needed |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "recipes").rglob("*.toml")}
    wrong = sorted(name for name in names if name.startswith(("tests", "benchmarks", "runs", ".")))
    return [f"lacks {name}" for name in sorted(needed - names)] + [f"holds {name}" for name in wrong]


def run_demo(wheel: Path, folder: Path) -> None:
    """The demo, from an environment that has the wheel and, behind it, the packages of this one."""
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", wheel], check=True)
    packages = _printed([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    # A path in a .pth file comes after the environment's own; the .pth files there (an editable install) do not count.
    (Path(packages) / "behind.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VERIDICAL"))}
    where = _printed([python, "-c", "import veridical; print(veridical.__file__)"], cwd=folder, env=environment)
    if not where.startswith(packages):
        sys.exit(f"veridical was imported from {where}, not from the wheel in {packages}.")
    subprocess.run([folder / "env" / "bin" / "veridical", *DEMO], check=True, cwd=folder, env=environment)
    if not (folder / "demo" / "planted-bilstm" / "audit" / "report.html").exists():
        sys.exit("The demo from the wheel wrote no report.")


def _printed(command: list[Any], **how: Any) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, **how).stdout.strip()


def main(dist: Path) -> None:
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    wrong = [f"{wheel.name} {what}" for what in differences(wheel)]
    wrong += [f"{sdist.name} {what}" for what in strangers(sdist)]
    if wrong:
        sys.exit("\n".join(wrong))
    with tempfile.TemporaryDirectory() as folder:
        run_demo(wheel.resolve(), Path(folder))
    print(f"{wheel.name} and {sdist.name} are whole, and the demo runs from the wheel.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
