"""Runs programs that nobody has read, in a sandbox of their own, by the `belljar` command.

    import belljar

    stdout, stderr, exit_code = belljar.SandboxedExecutor().execute("print(6 * 7)")

    outcome = belljar.run(["sort", "-n"], stdin="10\\n9\\n", memory="64M", timeout=5)
    print(outcome.status, outcome.stdout)

What comes out of a sandbox is text, bytes and numbers; nothing of it is ever unpickled or executed. All functions may be
used by many threads at once.
"""

from belljar import changes
from belljar._errors import (BelljarError, BelljarNotInstalled, ChangesError, ExecutionTimeout, ImageNotFound, InternalError,
                             Refused)
from belljar._executor import SandboxedExecutor
from belljar._outcome import Denial, FileRecord, Isolation, NetworkUse, Outcome, SkippedFile, Usage, WeakerWall
from belljar._run import run, run_async

__version__ = "0.1.0"

__all__ = [
    "BelljarError",
    "BelljarNotInstalled",
    "ChangesError",
    "Denial",
    "ExecutionTimeout",
    "FileRecord",
    "ImageNotFound",
    "InternalError",
    "Isolation",
    "NetworkUse",
    "Outcome",
    "Refused",
    "SandboxedExecutor",
    "SkippedFile",
    "Usage",
    "WeakerWall",
    "changes",
    "run",
    "run_async",
]
