"""What the interpreter read of its surroundings when the snapshot was made, read anew."""

import io
import os
import sys


def _stream(fd, mode, name, errors, unbuffered):
    """As create_stdio() of pylifecycle.c makes it."""
    unbuffered = unbuffered and mode == "w"
    try:
        buffer = io.open(fd, mode + "b", 0 if unbuffered else -1, closefd=False)
    except OSError:
        return None  # closed
    raw = buffer if unbuffered else buffer.raw
    raw.name = name
    line_buffering = not unbuffered and (fd == 2 or raw.isatty())
    stream = io.TextIOWrapper(buffer, "utf-8", errors, "\n", line_buffering, unbuffered)
    stream.mode = mode
    return stream


def wake(environment):
    # The dict that os.environ and posix.environ share.
    os.environ._data.clear()
    os.environ._data.update(environment)
    variable = os.environ.get
    unbuffered = bool(variable("PYTHONUNBUFFERED"))
    in_out_errors = sys.stdin.errors
    sys.stdin = sys.__stdin__ = _stream(0, "r", "<stdin>", in_out_errors, unbuffered)
    sys.stdout = sys.__stdout__ = _stream(1, "w", "<stdout>", in_out_errors, unbuffered)
    sys.stderr = sys.__stderr__ = _stream(2, "w", "<stderr>", "backslashreplace", unbuffered)
    sys.dont_write_bytecode = sys.dont_write_bytecode or bool(variable("PYTHONDONTWRITEBYTECODE"))
    if variable("PYTHONPATH"):
        sys.path[:0] = variable("PYTHONPATH").split(":")
    if variable("PYTHONWARNINGS"):
        sys.warnoptions.extend(variable("PYTHONWARNINGS").split(","))
        import warnings  # it reads them
