"""The options of `serve`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

from veridical.core import options as opt
from veridical.core.options import Help
from veridical.core.place import A_SOURCE
from veridical.core.ranges import between

PORT = 8765
MODELS = "One model or two to compare: run folders, models' folders or hub ids."
WATCH = "A folder of work under way to show: an audit, trainings, a grid. May be repeated."
TOKEN = "A token of your own for the address, at least 16 letters, digits, - or _."
KNOW = "Yes, let others on the network reach it, with the random token."


@dataclass(frozen=True)
class ServeOptions:
    """What is shown, and where."""

    models: Annotated[Any | Sequence[Any], Help(MODELS, "MODEL...", argument=True, commas=False)] = ()
    _: KW_ONLY
    data: Annotated[opt.Data | None, Help(f"{opt.DATA}, to browse.", "DATA")] = None
    limit: Annotated[opt.Count, Help("At most so many examples of every split, a sample.")] = 1000
    audit: Annotated[
        str | None, Help("A folder that `veridical audit` wrote, of the first model.", "DIR"), A_SOURCE
    ] = None
    watch: Annotated[Sequence[str] | str, Help(WATCH, "DIR", "--watch", commas=False), A_SOURCE] = ()
    host: Annotated[str, Help("Where to listen; others than this machine need --i-know or --token.")] = "127.0.0.1"
    port: Annotated[int, Help("Port to listen on; 0 takes one that is free."), between(0, 65535)] = PORT
    token: Annotated[str | None, Help(TOKEN, default="a random one")] = None
    i_know: Annotated[bool, Help(KNOW)] = False
    open_page: Annotated[bool, Help("Open the page in a browser.", option="--open")] = False
    device: opt.Device = None
    budget: opt.Budget = None
