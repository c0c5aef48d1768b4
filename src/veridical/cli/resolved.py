"""What a command was asked for, defaults included, beside what it made: `config.toml`, which `--config` reads again.

It says what decides a result. Where and by how many processes it was computed is left out, and so is the folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from veridical.core import store
from veridical.core.options import Option
from veridical.core.place import Written, written

CONFIG = "config.toml"
HOW = ("out", "device", "progress", "as_json", "shard", "workers", "engine", "address", "dry_run", "tick")


def write_resolved(name: str, values: Sequence[tuple[Option, Any]], tables: Mapping[str, Any]) -> None:
    """Into the folder that a verb was told to write to, if it did; `tables` has the settings of trainings, resolved."""
    asked = {option.name: value for option, value in values}
    out = next((value for option, value in values if option.name == "out" and _is_folder(option)), None)
    if out is None or asked.get("dry_run") or not os.path.isdir(out):
        return
    if os.access(out, os.W_OK):  # a result that was there already may be read where nothing can be written
        store.write_text(Path(out) / CONFIG, to_toml(name, values, tables))


def _is_folder(option: Option) -> bool:
    return any(isinstance(note, Written) and note.kind == "a folder" for note in written(option.annotation))


def to_toml(name: str, values: Sequence[tuple[Option, Any]], tables: Mapping[str, Any]) -> str:
    """The options of a command as `veridical NAME --config` reads them."""
    lines = [f"# veridical {name} --config THIS_FILE --out FOLDER"]
    after: list[str] = []
    for option, value in values:
        if option.name in HOW or option.help.hidden:
            continue
        if option.help.table:
            settings = store.plain(tables.get(option.name, value) or {})
            if settings:
                after += ["", f"[{option.help.table}]", *(f"{key} = {_value(one)}" for key, one in settings.items())]
        elif value != option.default or value not in (None, ()):
            plain = _named(value) if isinstance(value, Mapping) else store.plain(value)
            lines.append(f"{option.name} = {_value(plain)}")
    return "\n".join([*lines, *after]) + "\n"


def _named(value: Mapping[str, Any]) -> list[str]:
    """Models by name, as they are typed: NAME=MODEL."""
    several = {name: held if isinstance(held, (list, tuple)) else [held] for name, held in value.items()}
    return [f"{name}={one}" for name, held in several.items() for one in held]


def _value(value: Any) -> str:
    """TOML has no word for nothing: `none` is read as such."""
    if value is None:
        return '"none"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
