"""A script of ours on two processes, as people start them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def on_two_processes(script: str, *arguments: str) -> None:
    """Run a script under `accelerate launch`, to its end."""
    how = ["--multi_gpu", "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no"]
    how += ["--dynamo_backend", "no", "--main_process_port", str(free_port())]
    done = subprocess.run(
        [sys.executable, "-m", "accelerate.commands.launch", *how, script, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stderr[-3000:]
