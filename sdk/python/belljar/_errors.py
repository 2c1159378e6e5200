"""What is raised. How a program itself fared is never an exception, but for SandboxedExecutor's deadline."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from belljar._outcome import Outcome


class BelljarError(Exception):
    """The parent of all errors of this package."""


class BelljarNotInstalled(BelljarError, FileNotFoundError):
    """There is no `belljar` command in $BELLJAR or on PATH."""


class Refused(BelljarError):
    """Belljar refused to run the program: a wrong argument, a wall that this host can't enforce, a program that is not
    there. `code` is one of docs/generated/errors.md."""

    def __init__(self, code: str, message: str, outcome: Outcome):
        super().__init__(message)
        self.code = code
        self.outcome = outcome


class ImageNotFound(Refused):
    """No image of that name is loaded."""


class ChangesError(BelljarError):
    """Kept changes can't be shown, applied or discarded as asked; nothing was written."""


class InternalError(BelljarError):
    """Belljar itself failed; how the program fared is not known."""


class ExecutionTimeout(BelljarError, builtins.TimeoutError):
    """The program was killed at its deadline. What it had written by then is in `stdout` and `stderr`."""

    def __init__(self, outcome: Outcome):
        super().__init__(outcome.reason)
        self.outcome = outcome
        self.stdout = outcome.stdout
        self.stderr = outcome.stderr
