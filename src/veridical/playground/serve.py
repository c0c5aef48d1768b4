"""`veridical.serve`: the playground in a thread of this process, and the handle that stops it."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import secrets
import socket
import threading
import webbrowser
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veridical.core.errors import InputError
from veridical.core.options import takes
from veridical.core.readable import insist_on_characters, shown, shown_path
from veridical.core.wording import option
from veridical.model.names import insist_on_models
from veridical.playground import limits
from veridical.playground.options import ServeOptions

if TYPE_CHECKING:
    import uvicorn

    from veridical.playground.house import House
    from veridical.playground.served import Served

NEEDED = ("fastapi", "uvicorn")
TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")
PATIENCE = 30.0  # seconds in which the server has to be up; it has nothing to load any more
HEIGHT = 820  # pixels of the frame in a notebook


class Playground:
    """A server at work. In a notebook it shows itself; `stop()` ends it, as the end of the process does."""

    def __init__(self, house: House, server: uvicorn.Server, sockets: Sequence[socket.socket], host: str, token: str):
        self.house, self._server, self._host, self.token = house, server, host, token
        self.port = int(sockets[0].getsockname()[1])
        self._thread = threading.Thread(
            target=server.run, kwargs={"sockets": list(sockets)}, name="veridical-serving", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self._host, self._host)
        return f"http://{f'[{name}]' if ':' in name and name[0] != '[' else name}:{self.port}"

    @property
    def url(self) -> str:
        """The page, with the token."""
        return f"{self.address}/?token={self.token}"

    @property
    def far_url(self) -> str | None:
        """The same for other machines, where they may reach it."""
        from veridical.playground.gate import is_public

        if not is_public(self._host):
            return None
        name = socket.getfqdn() if self._host in ("0.0.0.0", "::") else self._host
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}/?token={self.token}"

    @property
    def models(self) -> list[Served]:
        return list(self.house.models.values())

    def wait(self) -> None:
        """Until it is stopped."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def stop(self) -> None:
        """End it; what is under way is withdrawn."""
        self.house.close()
        self._server.should_exit = True
        self._thread.join(PATIENCE)

    def __repr__(self) -> str:
        return f"Playground({self.url})"

    def _repr_html_(self) -> str:
        """A frame with the page. The token is in the address's fragment: a frame of another site has no cookies."""
        return (
            f'<iframe src="{escape(f"{self.address}/embed#token={self.token}")}" title="Veridical\'s playground" '
            f'style="width:100%;height:{HEIGHT}px;border:0" allow="clipboard-write"></iframe>'
        )


@takes(ServeOptions)
def serve(options: ServeOptions) -> Playground:
    """Open the playground: a page on this machine on which you erase words and see what every method says.

    It runs in the background of this process until `.stop()`. Models that are given as objects are not changed, and
    their weights are held once.

    Returns:
        A server at work: `.url` is its page. In a notebook it shows itself.

    Example:
        >>> playground = veridical.serve(clf, audit="audits/movies", port=0)
        >>> playground.stop()
    """
    given = _checked(options)
    from veridical.playground.house import Audited

    audit = None if options.audit is None else Audited.read(Path(options.audit))
    data = _data(options)
    sockets = [listening(options.host, options.port)]
    try:
        return _opened(options, given, data, audit, sockets)
    except BaseException:
        sockets[0].close()
        raise


def _opened(
    options: ServeOptions, given: Sequence[Any], data: Any, audit: Any, sockets: list[socket.socket]
) -> Playground:
    import uvicorn

    from veridical.model.load import classifier_of
    from veridical.playground.app import application
    from veridical.playground.connection import Connection
    from veridical.playground.gate import Gate
    from veridical.playground.house import House
    from veridical.playground.served import served

    models = {model.name: model for model in served([classifier_of(each) for each in given])}
    token = options.token or secrets.token_urlsafe(24)
    house = House(models, token, data, audit, _watched(options), options.budget)
    port = sockets[0].getsockname()[1]
    gate = Gate(application(house), token, options.host, f"veridical-{port}")
    settings = uvicorn.Config(
        gate,
        loop="asyncio",
        http=Connection,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    house.open()
    playground = Playground(house, uvicorn.Server(settings), sockets, options.host, token)
    if options.open_page:
        webbrowser.open(f"{playground.address}/?code={gate.once()}")  # all users can read command lines
    return playground


# -- before anything is loaded --------------------------------------------------------------------------------


def _checked(options: ServeOptions) -> list[Any]:
    """The models that were named, when all that can be seen to be wrong has been looked at."""
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if lacking:
        raise InputError(
            f"The playground needs {' and '.join(lacking)}, not installed here; run `pip install {' '.join(NEEDED)}`, "
            "or install veridical[serve]."
        )
    given = options.models
    models = list(given) if isinstance(given, (list, tuple)) else [given]
    watched = _watched(options)
    if not models and not watched:
        raise InputError(f"There is nothing to serve; name a model, or work to watch with {option('watch=DIR')}.")
    if len(models) > limits.MODELS:
        raise InputError(f"{len(models)} models were named; one or {limits.MODELS} are served: leave some out.")
    _check_access(options)
    if options.audit is not None:
        for name in ("summary.json", "examples.json"):
            if not os.path.isfile(os.path.join(options.audit, name)):
                raise InputError(f"{shown_path(options.audit)} has no {name}; name the folder of a finished audit.")
    insist_on_models(models)
    return models


def _check_access(options: ServeOptions) -> None:
    insist_on_characters(options.host, "host")
    if not options.host.strip():
        raise InputError(
            f"host is empty; name an address of this machine, such as 127.0.0.1, or leave {option('host')} out."
        )
    if options.token is not None and not TOKEN.fullmatch(options.token):
        raise InputError(
            f"The token is {shown(options.token)}; it must be 16 to 200 letters, digits, - or _: or leave it out for a "
            "random one."
        )
    from veridical.playground.gate import is_public

    if is_public(options.host) and not options.i_know and options.token is None:
        raise InputError(
            f"{options.host} lets everybody on the network reach the models, the data, the audit and the watched "
            f"folders, unencrypted, if they learn the token; say {option('i_know=True')} if that is meant, or give a "
            f"token of your own with {option('token=TOKEN')}."
        )


def _watched(options: ServeOptions) -> dict[str, Path]:
    """Watched folders by their names, which tell them apart."""
    given = [options.watch] if isinstance(options.watch, str) else list(options.watch)
    folders: dict[str, Path] = {}
    for each in given:
        insist_on_characters(each, "watch")
        if "\0" in each or not os.path.isdir(each):
            raise InputError(f"There is no folder {shown(each)} to watch; name one that holds work.")
        folder = Path(os.path.realpath(each))
        name = folder.name or str(folder)
        while name in folders and folders[name] != folder:
            name = f"{folder.parent.name}/{name}" if "/" not in name else f"{name}'"
        folders[name] = folder
    return folders


def _data(options: ServeOptions) -> Any:
    if options.data is None:
        return None
    from veridical.data import load_data

    return load_data(options.data, limit=options.limit)


def listening(host: str, port: int) -> socket.socket:
    """A socket on this address, or a sentence on why there is none."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(address)
            found.listen(128)
        except OSError:
            found.close()
            raise
        return found
    except (OSError, UnicodeError, ValueError) as problem:
        if getattr(problem, "errno", None) == errno.EADDRINUSE:
            raise InputError(
                f"Port {port} is in use on {host}; stop what listens there, or choose another with "
                f"{option('port=N')} (0 takes one that is free)."
            ) from problem
        reason = getattr(problem, "strerror", None) or problem
        raise InputError(
            f"It cannot listen on {shown(host)}, port {port} ({reason}); choose another {option('host')} or "
            f"{option('port')}."
        ) from problem
