"""`veridical serve`."""

from __future__ import annotations

import typer

from veridical.cli.speech import INTERRUPTED, say
from veridical.playground.options import ServeOptions


def serve(options: ServeOptions) -> None:
    """Open a page on this machine: type a text, see what every method says, erase words and watch the prediction.

    It shows two models side by side, the examples of data or of an audit, and beside every method what the audit
    found about it.

    Example: veridical serve runs/x --data hutto/movies --audit audits/movies

    Work under way: veridical serve --watch runs
    """
    from veridical.playground.gate import is_public
    from veridical.playground.serve import serve as begin

    try:
        playground = begin(**vars(options))
    except KeyboardInterrupt as stop:  # while models are loaded; there is nothing to go on from
        say("\nEnded before it was open.")
        raise typer.Exit(INTERRUPTED) from stop
    for model in playground.models:
        say(f"{model.name}: {model.parameters / 1e6:.1f} million parameters, {model.bytes / 1e6:,.0f} MB of memory.")
    if is_public(options.host):
        say(
            "Everybody who can reach this machine and has the token can use the models and read the data, the audit "
            "and the watched folders; what is sent is not encrypted."
        )
    typer.echo(playground.url)
    if playground.far_url is not None:
        say(f"From other machines: {playground.far_url}")
    say("Ctrl-C ends it.")
    try:
        playground.wait()
    except KeyboardInterrupt:
        say("\nEnded.")
    finally:
        playground.stop()
