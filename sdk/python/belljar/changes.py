"""What programs changed in workspaces (belljar.run(..., workspace=...)): to be looked at, applied or discarded.

    outcome = belljar.run(["make", "fix"], workspace="./repo")
    print(belljar.changes.diff(outcome.changes_id))
    applied = belljar.changes.apply(outcome.changes_id, "src")
    belljar.changes.discard(outcome.changes_id)

All of it works as `belljar changes` does (docs/workspace.md). Errors: ChangesError, BelljarNotInstalled.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any, Mapping, Optional

from belljar._errors import ChangesError
from belljar._outcome import exact_path
from belljar._run import StrPath, find_command


@dataclass(frozen=True)
class Change:
    """One file, folder or link that a program added, modified or deleted."""

    path: str  # below the workspace; bytes that are not UTF-8 as os.fsdecode() has them
    change: str  # added, modified, deleted
    kind: str  # file, folder, link
    size: int
    sha256: str  # of a file's new content; else empty


@dataclass(frozen=True)
class Changeset:
    """What one run changed."""

    id: str
    workspace: str
    created_at: str  # as in 2026-01-31T12:00:00Z
    size: int  # bytes of all that is kept
    changes: tuple[Change, ...]
    damage: Optional[str] = None  # what is wrong with it; such a set can only be discarded


@dataclass(frozen=True)
class LeftOut:
    """What apply() left out, and is still kept."""

    path: str  # stands for all below it
    reason: str
    changes: int  # how many


@dataclass(frozen=True)
class Applied:
    applied: tuple[Change, ...]
    left_out: tuple[LeftOut, ...]


def list(*, belljar: Optional[StrPath] = None) -> tuple[Changeset, ...]:
    """All that is kept. Damaged sets, of which only the id is known, have no workspace and no changes."""
    reply = _reply(_belljar(belljar, "list", "--json"))
    return tuple(_changeset(row) for row in reply["changesets"])


def diff(id: str, *paths: str, belljar: Optional[StrPath] = None) -> str:
    """What changed at and below `paths` (none: everywhere), for people: unified diffs of text, a line for the rest."""
    ended = _belljar(belljar, "diff", "--", id, *paths)
    if ended.returncode != 0:
        raise ChangesError(_last_line(ended))
    return ended.stdout.decode("utf-8", "replace")


def apply(id: str, *paths: str, belljar: Optional[StrPath] = None) -> Applied:
    """Writes the changes at and below `paths` (none: all) to the workspace's folder, and forgets them.

    Left out are hooks and configuration that tools act on by themselves, and symbolic links, unless `paths` name them.
    Raises ChangesError, with nothing written, when the folder has changed meanwhile where a change would go.
    """
    reply = _reply(_belljar(belljar, "apply", "--json", "--", id, *paths))
    left_out = tuple(LeftOut(path=exact_path(row), reason=row["reason"], changes=row["changes"]) for row in reply["left_out"])
    return Applied(_changes(reply["applied"]), left_out)


def discard(id: str, *, belljar: Optional[StrPath] = None) -> None:
    """Forgets the changes."""
    ended = _belljar(belljar, "discard", "--", id)
    if ended.returncode != 0:
        raise ChangesError(_last_line(ended))


def _belljar(given: Optional[StrPath], *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([find_command(given), "changes", *arguments], stdin=subprocess.DEVNULL, capture_output=True)


def _changeset(row: Mapping[str, Any]) -> Changeset:
    if row["damage"] is not None:
        return Changeset(id=row["id"], workspace="", created_at="", size=0, changes=(), damage=row["damage"])
    return Changeset(id=row["id"], workspace=exact_path(row, "workspace"), created_at=row["created_at"], size=row["size"],
                     changes=_changes(row["changes"]))


def _changes(rows: Any) -> tuple[Change, ...]:
    return tuple(Change(path=exact_path(row), change=row["change"], kind=row["kind"], size=row["size"], sha256=row["sha256"])
                 for row in rows)


def _reply(ended: subprocess.CompletedProcess[bytes]) -> Mapping[str, Any]:
    try:
        reply = json.loads(ended.stdout)
    except ValueError:
        raise ChangesError(_last_line(ended)) from None
    if "error" in reply:
        raise ChangesError(reply["error"]["message"])
    return reply


def _last_line(ended: subprocess.CompletedProcess[bytes]) -> str:
    lines = ended.stderr.decode("utf-8", "replace").strip().split("\n")
    return lines[-1].removeprefix("belljar: ") or f"it ended with status {ended.returncode}"
