"""SandboxedExecutor: Python code in, (stdout, stderr, exit_code) out."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from belljar._errors import ExecutionTimeout
from belljar._outcome import Outcome
from belljar._run import Amount, StrPath, run, run_async

_CPU_PERIOD = 100_000


class SandboxedExecutor:
    """Runs Python code, each time in a new sandbox: no network, none of this host's files, no secrets, and limits.

    image: the name of a loaded image; None: this host's own /usr.
    timeout_seconds: wall clock of one execution.
    memory_limit: such as "256m".
    cpu_quota: microseconds of processor time in each 100,000: 50000 is half a core; None: one core.
    options: further arguments for belljar.run(), such as mounts=["./data:/data"].

    A memory limit or quota other than the default must hold in full, or Refused is raised. The defaults may be held more weakly,
    where an ordinary user has no control group.

    One executor may be used by many threads at once; it holds nothing but these settings.
    """

    def __init__(
        self,
        image: Optional[str] = None,
        timeout_seconds: float = 30,
        memory_limit: Amount = "256m",
        cpu_quota: Optional[int] = 50000,
        *,
        belljar: Optional[StrPath] = None,
        **options: Any,
    ):
        chosen = {"memory": str(memory_limit).upper() not in ("256M", "268435456"), "cpus": cpu_quota != 50000}
        weaker = [name for name, is_chosen in chosen.items() if not is_chosen]
        self._arguments = {
            **options,
            "accept_weaker": [*options.get("accept_weaker", ()), *weaker],
            "image": image,
            "timeout": timeout_seconds,
            "memory": memory_limit,
            "cpus": None if cpu_quota is None else cpu_quota / _CPU_PERIOD,
            "belljar": belljar,
        }

    def execute(self, code: str) -> Tuple[str, str, int]:
        """Runs `code` and returns (stdout, stderr, exit_code).

        The exit code of a program that was killed is 128 + the signal. Where a limit struck, the last line of stderr says
        which. Raises ExecutionTimeout, a TimeoutError with the output so far as .stdout and .stderr; ImageNotFound; and
        the other errors of belljar.run().
        """
        return _result(run(code=code, **self._arguments))

    async def execute_async(self, code: str) -> Tuple[str, str, int]:
        """The same as execute(), for asyncio."""
        return _result(await run_async(code=code, **self._arguments))


def _result(outcome: Outcome) -> Tuple[str, str, int]:
    if outcome.status == "timeout":
        raise ExecutionTimeout(outcome)
    stderr = outcome.stderr
    for stream, cut, total in (("stdout", outcome.stdout_truncated, outcome.stdout_bytes_total),
                               ("stderr", outcome.stderr_truncated, outcome.stderr_bytes_total)):
        if cut:
            stderr += ("\n" if stderr and not stderr.endswith("\n") else "") + \
                f"belljar: {stream} was cut at the output limit; the program wrote {total} bytes\n"
    if outcome.reason:
        stderr += ("\n" if stderr and not stderr.endswith("\n") else "") + f"belljar: {outcome.reason}\n"
    return outcome.stdout, stderr, outcome.returncode
