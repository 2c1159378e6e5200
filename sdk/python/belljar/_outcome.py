"""The result record (docs/result-record.md) as Python objects."""

from __future__ import annotations

import base64
import dataclasses
import os
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional


@dataclass(frozen=True)
class Usage:
    """What the run used. A field is None where this host does not measure it."""

    cpu_user_ms: Optional[int] = None
    cpu_system_ms: Optional[int] = None
    cpu_throttled_ms: Optional[int] = None  # kept from running by the processor limit
    fuel_used: Optional[int] = None  # of a module with --fuel
    memory_peak_bytes: Optional[int] = None  # without the page cache
    memory_peak_is_sampled: Optional[bool] = None
    oom_kills: Optional[int] = None  # also when the program went on
    processes_peak: Optional[int] = None
    read_bytes: Optional[int] = None
    written_bytes: Optional[int] = None
    disk_written_bytes: Optional[int] = None  # held in the writable space at the end
    disk_written_inodes: Optional[int] = None
    disk_peak_bytes: Optional[int] = None  # the most that looks have seen there
    disk_peak_inodes: Optional[int] = None
    net_sent_bytes: Optional[int] = None
    net_received_bytes: Optional[int] = None
    start_us: Optional[int] = None  # until the program was executed


@dataclass(frozen=True)
class Denial:
    """Something that the program asked for and did not get."""

    kind: str
    target: str
    rule: str
    hint: str
    count: int


@dataclass(frozen=True)
class NetworkUse:
    """A host that the program was allowed to reach, and did."""

    target: str
    rule: str
    count: int
    sent_bytes: int
    received_bytes: int


@dataclass(frozen=True)
class FileRecord:
    """A file that was collected, or a changed file of the workspace. Paths that are not UTF-8 are as os.fsdecode() has them."""

    path: str  # inside
    saved_as: str  # on this host; empty for a change that is kept
    size: int
    sha256: str  # empty where the file was deleted
    change: str  # added, modified or deleted


@dataclass(frozen=True)
class SkippedFile:
    """Something that was to be collected and was not."""

    path: str  # inside
    reason: str


@dataclass(frozen=True)
class WeakerWall:
    """A wall or limit that holds less than in full, or not at all, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class Isolation:
    """Which walls and limits were up."""

    tier: str = ""  # empty: it was refused before one was chosen
    enforced: tuple[str, ...] = ()
    weaker: tuple[WeakerWall, ...] = ()
    missing: tuple[WeakerWall, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `record` is the whole record as it came, with fields of later versions too."""

    status: str  # ok, error, timeout, memory, ...: docs/result-record.md
    exit_code: Optional[int]  # None when the program did not exit by itself
    signal: Optional[int]  # the signal that killed it
    reason: str  # one line for people; empty for ok and error
    stdout: str  # bytes that are not UTF-8 show as U+FFFD
    stderr: str
    stdout_bytes: bytes = field(repr=False)  # exactly as written, up to the output limit
    stderr_bytes: bytes = field(repr=False)
    stdout_truncated: bool
    stderr_truncated: bool
    stdout_bytes_total: int
    stderr_bytes_total: int
    duration_ms: int
    usage: Usage
    limits: Mapping[str, Any]  # None where there is none; empty: it was refused before they were known
    network: tuple[NetworkUse, ...]  # hosts that the program reached
    files: tuple[FileRecord, ...]
    files_skipped: tuple[SkippedFile, ...]
    files_truncated: bool  # a file's content was left behind, for a reason in files_skipped
    denials: tuple[Denial, ...]
    warnings: tuple[str, ...]  # limits that the run came close to
    isolation: Isolation
    changes_id: Optional[str]  # what belljar.changes calls the changes to the workspace; None: there are none
    record: Mapping[str, Any] = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether the program exited with 0, and no content of its files was left behind."""
        return self.status == "ok" and not self.files_truncated

    @property
    def returncode(self) -> int:
        """One number for the ending, as a shell has it: the exit code, or 128 + the signal; 125, as of the command, where the
        program exited with 0 and content of its files was left behind."""
        if self.status == "ok" and self.files_truncated:
            return 125
        if self.exit_code is not None:
            return self.exit_code
        return 128 + (self.signal if self.signal is not None else 9)


def _stream(record: Mapping[str, Any], name: str) -> bytes:
    exact = record.get(f"{name}_base64")
    return base64.b64decode(exact) if exact is not None else record[name].encode()


def exact_path(row: Mapping[str, Any], name: str = "path") -> str:
    """A path of a row, byte for byte: what is not UTF-8 is as os.fsdecode() has it."""
    exact = row.get(f"{name}_base64")
    return os.fsdecode(base64.b64decode(exact)) if exact is not None else row[name]


def _known(kind: type, values: Mapping[str, Any]) -> Any:
    names = {each.name for each in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in names})


def outcome_from_record(record: Mapping[str, Any]) -> Outcome:
    isolation = record["isolation"]
    return Outcome(
        status=record["status"],
        exit_code=record["exit_code"],
        signal=record["signal"],
        reason=record["reason"],
        stdout=record["stdout"],
        stderr=record["stderr"],
        stdout_bytes=_stream(record, "stdout"),
        stderr_bytes=_stream(record, "stderr"),
        stdout_truncated=record["stdout_truncated"],
        stderr_truncated=record["stderr_truncated"],
        stdout_bytes_total=record["stdout_bytes_total"],
        stderr_bytes_total=record["stderr_bytes_total"],
        duration_ms=record["duration_ms"],
        usage=_known(Usage, record["usage"]),
        limits=record["limits"] or {},
        network=tuple(_known(NetworkUse, row) for row in record["network"]),
        files=tuple(_known(FileRecord, {**row, "path": exact_path(row), "saved_as": exact_path(row, "saved_as")})
                    for row in record["files"]),
        files_skipped=tuple(_known(SkippedFile, {**row, "path": exact_path(row)}) for row in record["files_skipped"]),
        files_truncated=record["files_truncated"],
        warnings=tuple(record["warnings"]),
        denials=tuple(_known(Denial, row) for row in record["denials"]),
        isolation=Isolation(
            tier=isolation["tier"] or "",
            enforced=tuple(isolation["enforced"]),
            weaker=tuple(_known(WeakerWall, row) for row in isolation["weaker"]),
            missing=tuple(_known(WeakerWall, row) for row in isolation["missing"]),
        ),
        changes_id=record["changes_id"],
        record=record,
    )
