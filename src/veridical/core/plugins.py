"""Parts of users' own: methods, metrics, terms, priors and datasets that stand outside this tree.

A part registers itself when its module is imported. Which modules are is said by

- installed packages: every entry point of the group `veridical` names a module;
- `use`, which `--with` of the command line calls, and the environment variable VERIDICAL_WITH: dotted names, or paths
  of .py files, with commas between them. `use` writes the variable, and with it worker processes find the same parts.

Registries ask for them (`load`) when they look for what there is. A file is imported under its own name, with its
folder at the end of `sys.path`: so `import` of it elsewhere gives the same module, and it may import its neighbours.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from veridical.core.errors import InputError
from veridical.core.readable import insist_on_characters
from veridical.core.spec import listed

WITH = "VERIDICAL_WITH"
GROUP = "veridical"
OURS = "veridical"  # the package of built-in parts

INSTALLED = "installed packages"
_loaded: set[str] = set()  # names and paths that need no second look


def use(*modules: str) -> None:
    """Import parts of your own (methods, metrics, terms, priors, datasets), here and in every worker process.

    Args:
        *modules: Dotted names of modules, or paths of .py files. What is in them registers itself.

    Returns:
        Nothing. From then on the names can be used as the built-in ones are.

    Example:
        >>> veridical.use("my_parts.py")
        >>> veridical.explain(clf, texts, "my_method")
    """
    for module in modules:
        insist_on_characters(str(module), "The name of the module")
    named = listed(map(str, modules))
    if modules and not named:
        raise InputError(f"{modules[0]!r} names no module with parts; give a .py file, or leave it out.")
    names = [os.path.realpath(os.path.expanduser(name)) if _is_path(name) else name for name in named]
    for name in names:
        if "," in name:
            raise InputError(f"{name} has a comma in its path, at which a list of modules is cut; rename it.")
        _import(name)
    os.environ[WITH] = ",".join(dict.fromkeys([*_given(), *names]))


def load() -> None:
    """Import what installed packages and the environment name, each once."""
    if INSTALLED not in _loaded:
        for point in sorted(metadata.entry_points(group=GROUP), key=lambda point: point.name):
            _import(point.module, f" (the package {point.dist.name} brings it)" if point.dist else "")
        _loaded.add(INSTALLED)
    if missing := [name for name in _given() if name not in _loaded]:
        use(*missing)


def environment() -> dict[str, str]:
    """What a process has to have in its environment to find the same parts."""
    return {WITH: os.environ[WITH]} if os.environ.get(WITH) else {}


def fingerprints() -> dict[str, str]:
    """The modules that were imported so, with a hash of what is in their files: provenance, without anybody's paths."""
    files = {name: file for name in sorted(_loaded - {INSTALLED}) if (file := _file_of(name)) is not None}
    return {
        file.stem if _is_path(name) else name: hashlib.blake2b(file.read_bytes(), digest_size=4).hexdigest()
        for name, file in files.items()
    }


def check(kind: str, held: Any, new: Any) -> None:
    """Insist that a name of a registry is free for an entry, or held by the same function, defined again."""
    if held is None or _home(held.run) == _home(new.run):
        return
    here, there = (_home(entry.run)[0] for entry in (new, held))
    if _source(held.run) == _source(new.run):
        raise InputError(
            f"The {kind} {new.name!r} of {_source(new.run)[0]} was imported under two names, {there} and {here}; "
            "import it under one of them only."
        )
    ours = [module.partition(".")[0] == OURS for module in (here, there)]
    if any(ours) and not all(ours):
        raise InputError(
            f"{there if ours[0] else here} has a {kind} {new.name!r}, but that is the name of a built-in one; give it "
            "another name."
        )
    raise InputError(f"Two {kind}s are called {new.name!r}, one in {there} and one in {here}; rename one of them.")


# -- importing ----------------------------------------------------------------------------------------------


def _given() -> list[str]:
    return listed(os.environ.get(WITH, ""))


def _is_path(name: str) -> bool:
    return name.endswith(".py") or os.sep in name


def _import(name: str, brought: str = "") -> None:
    if name in _loaded:
        return
    _loaded.add(name)  # before it is imported: it may look into a registry itself
    try:
        if not _is_path(name):
            importlib.import_module(name)
        elif not _is_imported(Path(name)):
            importlib.import_module(_findable(Path(name)))
    except InputError:
        _loaded.discard(name)
        raise
    except (Exception, SystemExit) as problem:  # whatever a user's module may raise: a script may end itself
        _loaded.discard(name)
        raise InputError(_why(name, problem, brought)) from problem


def _is_imported(path: Path) -> bool:
    """Whether a file is a module of this process already, under whatever name: `__main__`, say."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return any(file is not None and Path(file).resolve() == path for file in files)


def _findable(path: Path) -> str:
    """The name under which a file can be imported from now on."""
    if not os.path.isfile(path) or path.suffix != ".py":
        raise InputError(f"There is no file {str(path)!r} with parts; give a .py file, or a module's dotted name.")
    if not path.stem.isidentifier():
        raise InputError(f"{path} cannot be imported: {path.stem!r} is no name that Python allows; rename the file.")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
        importlib.invalidate_caches()
    spec = importlib.util.find_spec(path.stem)
    if spec is None or spec.origin is None or Path(spec.origin).resolve() != path:
        other = "a module of Python's own" if spec is None or not spec.origin else spec.origin
        raise InputError(f"{path} has the name of another module ({other}); rename the file.")
    return path.stem


def _why(name: str, problem: BaseException, brought: str) -> str:
    missing = problem.name if isinstance(problem, ModuleNotFoundError) else None
    if missing is not None and (name == missing or name.startswith(f"{missing}.")):
        near = Path(f"{name.replace('.', '/')}.py")
        hint = (
            f"here is a file of that name, so write {near}"
            if os.path.exists(near)
            else "install it, or give its .py file"
        )
        return f"There is no module {name!r}{brought} that can be imported from here; {hint}."
    what = f"{type(problem).__name__}: {problem}"
    if isinstance(problem, SyntaxError):
        line = f"line {problem.lineno} of {problem.filename}" if problem.lineno else "it"  # none: a null byte
        where = f"{line} is not Python"
        return f"{name}{brought} cannot be imported: {where} ({what}); mend it, or leave it out."
    frames = traceback.extract_tb(problem.__traceback__)
    source = _file_of(name)
    lines = [frame for frame in frames if source is not None and Path(frame.filename).resolve() == source]
    if not lines:  # it failed in what it imports
        lines = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    where = f"line {lines[-1].lineno} of {lines[-1].filename} fails" if lines else "it fails"
    return f"{name}{brought} cannot be imported: {where} ({what}); mend it, or leave it out."


def _file_of(name: str) -> Path | None:
    if _is_path(name):
        return Path(name)
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file is None:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            return None
        file = spec.origin if spec is not None else None
    return Path(file).resolve() if file is not None and Path(file).is_file() else None


# -- where a part comes from --------------------------------------------------------------------------------


def _home(run: Callable[..., Any]) -> tuple[str, str]:
    """By its module's name."""
    return getattr(run, "__module__", ""), getattr(run, "__qualname__", repr(run))


def _source(run: Callable[..., Any]) -> tuple[str, str]:
    """By its file."""
    try:
        return os.path.realpath(inspect.getsourcefile(run) or ""), _home(run)[1]
    except TypeError:  # no function of a file
        return _home(run)
