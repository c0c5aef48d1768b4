"""Run the tutorials anew and store them with small outputs: `python docs/tutorials.py`, from anywhere.

What they write goes to a temporary folder. Bars, warnings and what differs from machine to machine are not stored.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "tutorials"
NOTEBOOKS = tuple(sorted(FOLDER.glob("*.ipynb")))
SECONDS = 600  # for a cell, on a machine that does other things too
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def execute(notebook: Any, folder: Path) -> Any:
    """The notebook after every cell has run in `folder`; an error in a cell is raised."""
    from nbclient import NotebookClient

    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )
    return client.execute()


def tidy(notebook: Any) -> Any:
    """The notebook with what a reader needs: results, prints and figures."""
    notebook.metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE}
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if _stays(output)]
            for output in cell.outputs:
                output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    return notebook


def _stays(output: Any) -> bool:
    if output.output_type == "stream":
        return output.name == "stdout"
    # What is displayed on the way is a bar, unless it is a figure.
    return output.output_type != "display_data" or "image/png" in output.data


def main() -> None:
    import nbformat

    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            done = tidy(execute(nbformat.read(path, as_version=4), Path(folder)))
        stored = nbformat.writes(done, indent=1)
        if named := re.findall(re.escape(folder), stored):
            sys.exit(f"{path.name} would store the temporary folder {len(named)} times; let it print relative paths.")
        path.write_text(stored.rstrip("\n") + "\n", encoding="utf-8")
        print(f"{path.name}: {len(stored) / 1000:.0f} KB")


if __name__ == "__main__":
    main()
