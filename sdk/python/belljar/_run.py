"""belljar.run(): one program, one sandbox, one Outcome."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
from typing import Any, Iterable, Iterator, Mapping, NoReturn, Optional, Sequence, Union

from belljar._errors import BelljarError, BelljarNotInstalled, ImageNotFound, InternalError, Refused
from belljar._outcome import Outcome, outcome_from_record

StrPath = Union[str, "os.PathLike[str]"]
Amount = Union[str, int, float]

# Variables that the command itself reads. A value for the sandbox is then given on the command line, so that it does not
# change what the command does; other values are handed over where other users of the host can't see them.
_READ_BY_BELLJAR = ("PATH", "HOME", "TMPDIR", "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION", "SSL_CERT_FILE")


def run(
    command: Optional[Sequence[str]] = None,
    *,
    code: Optional[str] = None,
    script: Optional[StrPath] = None,
    args: Sequence[str] = (),
    stdin: Union[str, bytes, None] = None,
    image: Optional[str] = None,
    timeout: Optional[Amount] = None,
    memory: Optional[Amount] = None,
    cpus: Optional[Amount] = None,
    limits: Optional[Mapping[str, Amount]] = None,
    env: Optional[Mapping[str, str]] = None,
    mounts: Iterable[str] = (),
    collect: Iterable[str] = (),
    workspace: Optional[StrPath] = None,
    workdir: Optional[str] = None,
    venv: Optional[StrPath] = None,
    policy: Optional[StrPath] = None,
    require: Iterable[str] = (),
    accept_weaker: Iterable[str] = (),
    profile: Optional[str] = None,
    keep: bool = False,
    auto_limits: Optional[str] = None,
    options: Sequence[str] = (),
    belljar: Optional[StrPath] = None,
) -> Outcome:
    """Runs one program in a new sandbox and returns how it ended. Blocks until then.

    Exactly one of these is the program:
        command: a command of the image and its arguments; [] with image=: the program that the image names.
        code: Python code.
        script: a script on this host (.py .sh .js .pl, or with a #! line).
    args: arguments for code or script.
    stdin: what the program reads; None: nothing.
    image: a loaded image's name; None: the host's own /usr.
    timeout: wall clock, in seconds or as in "500ms".
    memory: in bytes or as in "256M".
    cpus: processor time per second, in cores.
    limits: any limits by their names (docs/generated/limits.md), such as {"tasks": 64, "tmp_size": "10M"}.
    env: variables for the program; it has none of the caller's.
    mounts: "SOURCE:TARGET[:ro|rw]" of this host's files and folders.
    collect: "SOURCE:FOLDER", files to be fetched out at the end.
    workspace: a folder of this host that the program may change in a view of its own, at /workspace. What it changed is
        kept as Outcome.changes_id until belljar.changes applies or discards it.
    workdir: working folder inside.
    venv: a virtual environment of this host, seen read-only inside.
    policy: a policy file; what is given here wins over it.
    require: walls and limits that must hold in full.
    accept_weaker: limits that are given and may still be held less than in full, where this host can't: as an ordinary
        user without a control group, memory and processor time are sampled. Otherwise such a run is refused.
    profile: remember the run under this name, for `belljar calibrate`; keep: with the program's text and output.
    auto_limits: take limits that are not given from the recorded runs of this profile.
    options: further options of `belljar run`, as it takes them.
    belljar: the command; None: $BELLJAR, or `belljar` on PATH.

    Raises Refused (ImageNotFound for an unknown image) when Belljar won't run the program, BelljarNotInstalled, and
    InternalError. Whatever the program does, its deadline included, is an Outcome.
    """
    request = _Request(locals())
    with request.argv() as (argv, fds):
        process = subprocess.Popen(argv, env=request.environment, stdin=request.stdin_kind, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, pass_fds=fds)
        with process:
            try:
                out, err = process.communicate(request.stdin)
            # KeyboardInterrupt: the command ends its sandbox when it is told to end. Where Popen itself was interrupted,
            # nobody reads what the command writes, and it ends for that.
            except BaseException:
                process.terminate()
                raise
    return _outcome(process.returncode, out, err, request)


async def run_async(command: Optional[Sequence[str]] = None, **options: Any) -> Outcome:
    """The same as run(), for asyncio. Cancelling it ends the sandbox."""
    request = _Request(_with_defaults(command, options))
    with request.argv() as (argv, fds):
        process = await asyncio.create_subprocess_exec(*argv, env=request.environment, stdin=request.stdin_kind,
                                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                       limit=_STREAM_LIMIT, pass_fds=fds)
        try:
            out, err = await process.communicate(request.stdin)
        except BaseException:
            ending = asyncio.ensure_future(_end(process))
            _ENDINGS.add(ending)
            ending.add_done_callback(_ENDINGS.discard)
            await asyncio.shield(ending)  # which goes on though this be cancelled once more
            raise
    return _outcome(process.returncode, out, err, request)


_ENDINGS: "set[asyncio.Future[None]]" = set()  # an event loop alone does not keep them alive


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends the command, and its sandbox with it."""
    try:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        if process.stdin is not None:
            process.stdin.transport.abort()
        await process.communicate()  # not wait(): it writes what the program wrote by then, and ends once that is read
    finally:
        if process.returncode is None:  # cancelled too: the event loop ends
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


_STREAM_LIMIT = 1 << 20


def _with_defaults(command: Optional[Sequence[str]], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of run() with its defaults, for a call that has only some of them."""
    known = dict(run.__kwdefaults__)
    unknown = options.keys() - known.keys()
    if unknown:
        raise TypeError(f"run_async() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    return {**known, **options, "command": command}


def find_command(given: Optional[StrPath]) -> str:
    """The path of the belljar command."""
    named = given if given is not None else os.environ.get("BELLJAR")
    found = shutil.which(os.fspath(named) if named else "belljar")
    if found is None:
        where = f"there is no command {os.fspath(named)}" if named else "belljar is not on PATH, nor named by $BELLJAR"
        raise BelljarNotInstalled(where)
    return found


def _toml_string(text: str) -> str:
    return json.dumps(text).replace("\x7f", "\\u007f")  # TOML's basic strings have JSON's escapes


class _Request:
    """The arguments of one run(), checked, as a command line."""

    def __init__(self, arguments: Mapping[str, Any]):
        self._given = arguments
        programs = [name for name in ("command", "code", "script") if arguments[name] is not None]
        if len(programs) != 1:
            raise ValueError("give exactly one of command, code and script")
        if arguments["code"] is not None and not isinstance(arguments["code"], str):
            raise TypeError(f"code is text, not {type(arguments['code']).__name__}")
        if programs == ["command"] and isinstance(arguments["command"], str):
            raise ValueError("command is a sequence of words, such as ['ls', '-l']")
        if programs == ["command"] and not arguments["command"] and arguments["image"] is None:
            raise ValueError("command is empty, and no image names a program in its place")
        if programs == ["command"] and arguments["args"]:
            raise ValueError("args belong to code and script; the words of a command are all in command")
        self._command = find_command(arguments["belljar"])
        self._in_memory: dict[str, str] = {}  # by path, what messages call it
        for name, value in (arguments["env"] or {}).items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise TypeError(f"env: names and values are text, not {name!r}: {value!r}")
            if not name or "=" in name or "\0" in name or "\0" in value:
                raise ValueError(f"env: {name!r} can't name a variable: it is empty or has = or NUL in it, or its value has NUL")
        stdin = arguments["stdin"]
        self.stdin: Optional[bytes] = stdin.encode() if isinstance(stdin, str) else stdin
        self.stdin_kind = subprocess.DEVNULL if self.stdin is None else subprocess.PIPE
        self.environment = {**os.environ, **{name: value for name, value in (arguments["env"] or {}).items()
                                             if not self._is_on_command_line(name)}}

    @staticmethod
    def _is_on_command_line(name: str) -> bool:
        return name in _READ_BY_BELLJAR or name.startswith(("XDG_", "BELLJAR"))

    @contextlib.contextmanager
    def argv(self) -> Iterator[tuple[list[str], list[int]]]:
        """The command line, and the descriptors that it names: files in memory, which go when the last process that has
        them ends. They are open as long as the context."""
        given = self._given
        with contextlib.ExitStack() as files:
            fds: list[int] = []

            def path_of(name: str, content: str, shown: str) -> str:
                fds.append(_file_in_memory(name, content.encode(), files))
                path = f"/proc/self/fd/{fds[-1]}"
                self._in_memory[path] = shown
                return path

            argv = [self._command, "run", "--json", *self._options()]
            limits = self._limits()
            if limits:
                argv.append("--policy=" + path_of("limits.toml", limits, ""))
            argv += given["options"]
            if given["command"] is not None:
                argv += ["--", *given["command"]]
            elif given["script"] is not None:
                argv += [_as_path(given["script"]), *given["args"]]
            else:
                argv += [path_of("main.py", given["code"], "code: "), *given["args"]]
            yield argv, fds

    def in_callers_words(self, message: str) -> str:
        """A message of the command's, without the paths that nobody but this package knows."""
        for path, shown in self._in_memory.items():
            message = re.sub(rf"{path}(?!\d)(:\d+)?(: )?", shown, message)
        return message

    def _options(self) -> Iterator[str]:
        given = self._given
        if self.stdin is None:
            yield "--no-stdin"
        for name, flag in (("image", "image"), ("workspace", "workspace"), ("workdir", "workdir"), ("venv", "venv"),
                           ("policy", "policy"), ("profile", "profile")):
            if given[name] is not None:
                yield f"--{flag}={os.fspath(given[name])}"
        if given["auto_limits"] is not None:
            yield f"--limits=auto:{given['auto_limits']}"
        if given["keep"]:
            yield "--keep"
        for name, flag in (("mounts", "mount"), ("collect", "collect"), ("require", "require"),
                           ("accept_weaker", "accept-weaker")):
            for value in given[name]:
                yield f"--{flag}={value}"
        for name, value in (given["env"] or {}).items():
            yield f"-e{name}={value}" if self._is_on_command_line(name) else f"-e{name}"

    def _limits(self) -> str:
        """Limits go by a policy file, which has them by their names; empty when there are none."""
        limits = dict(self._given["limits"] or {})
        limits.update({name: self._given[name] for name in ("timeout", "memory", "cpus") if self._given[name] is not None})
        lines = [f"{_toml_string(name)} = {_toml_string(_amount_text(value))}\n" for name, value in limits.items()]
        return "[limits]\n" + "".join(lines) if lines else ""


def _file_in_memory(name: str, content: bytes, files: contextlib.ExitStack) -> int:
    """A descriptor of a file without a place in any folder (memfd_create(2)), which `files` closes."""
    made = os.memfd_create(name)
    with open(made, "wb") as file:
        file.write(content)
        file.flush()
        # Above those that become the command's stdin, stdout and stderr, should the caller have closed its own.
        fd = fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, 3)
    files.callback(os.close, fd)
    return fd


def _amount_text(value: Amount) -> str:
    return f"{value:.9f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _as_path(script: StrPath) -> str:
    text = os.fspath(script)
    return os.path.join(".", text) if text.startswith("-") else text


def _outcome(status: int, out: bytes, err: bytes, request: _Request) -> Outcome:
    """The record that the command wrote, as an Outcome, or the exception that it tells of."""
    try:
        record = json.loads(out)
    except ValueError:
        said = err.decode("utf-8", "replace").strip() or f"it ended with status {status}"
        raise InternalError(f"belljar wrote no record: {said}") from None
    error = record["error"]
    if error is not None:
        error["message"] = request.in_callers_words(error["message"])
        record["reason"] = request.in_callers_words(record["reason"])
    outcome = outcome_from_record(record)
    if error is not None:
        _raise_error(error["code"], error["message"], outcome)
    return outcome


def _raise_error(code: str, message: str, outcome: Outcome) -> NoReturn:
    if outcome.status != "denied":
        raise InternalError(message)
    if code == "unknown_image":
        raise ImageNotFound(code, message, outcome)
    raise Refused(code, message, outcome)


__all__ = ["BelljarError", "find_command", "run", "run_async"]
