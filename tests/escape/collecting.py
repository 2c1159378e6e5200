"""What the cases of result collection share: a run whose files are fetched, and a look at what came."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

from harness import Caller, Result
from outside import OutsideTest


def tree(folder: Path) -> dict[bytes, bytes | str]:
    """Everything below the folder without following a link: content of files, "folder", or what else it is."""
    found: dict[bytes, bytes | str] = {}
    top = os.fsencode(folder)
    for here, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(here, name)
            short = os.path.relpath(path, top)
            if os.path.islink(path):
                found[short] = "link"
            elif os.path.isdir(path):
                found[short] = "folder"
            elif os.path.isfile(path):
                found[short] = Path(os.fsdecode(path)).read_bytes()
            else:
                found[short] = "special"
    return found


def fingerprint(path: str | Path) -> tuple:
    """What must not change about a file of the host's."""
    status = os.lstat(path)
    content = hashlib.sha256(Path(path).read_bytes()).hexdigest() if os.path.isfile(path) else None
    return (status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_mtime_ns, content)


class CollectTest(OutsideTest):
    def results(self, caller: Caller, name: str = "results") -> Path:
        return self.host_folder(f"{name}-{caller}", caller)

    def fetch(self, probe: str | list[str], to: Path, caller: Caller, flags: list[str] = (), source: str = "/out") -> Result:
        return self.sandbox(probe, ["--collect", f"{source}:{to}", *flags], caller)

    def reasons(self, result: Result) -> dict[str, str]:
        return {row["path"]: row["reason"] for row in result.record["files_skipped"]}


class WorkspaceTest(CollectTest):
    """The other way by which files come out: changes of a workspace, which are kept and applied."""

    def workspace(self, caller: Caller, name: str = "work") -> Path:
        folder = self.host_folder(f"{name}-{caller}", caller)
        (folder / "file").write_text("host's\n")
        (folder / "folder").mkdir()
        (folder / "folder" / "inner").write_text("host's\n")
        self.give(folder, caller)
        return folder

    def give(self, folder: Path, caller: Caller) -> None:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, caller.uid, caller.uid, follow_symlinks=False)

    def change(self, probe: str | list[str], work: Path, caller: Caller, flags: list[str] = (), **options) -> Result:
        """Runs the probe on the workspace; result.record["changes_id"] names what it changed."""
        return self.sandbox(probe, ["--workspace", str(work), *flags], caller, **options)

    def changes(self, caller: Caller, *arguments: str) -> subprocess.CompletedProcess:
        return caller.run([caller.belljar, "changes", *arguments])

    def apply(self, result: Result, caller: Caller, *paths: str) -> dict[str, str]:
        """Applies what the run changed; what was left out, with the reasons."""
        run = self.changes(caller, "apply", "--json", result.record["changes_id"], *paths)
        return {row["path"]: row["reason"] for row in json.loads(run.stdout).get("left_out", [])}

    def kept(self, caller: Caller, id: str) -> dict[str, dict]:
        sets = json.loads(self.changes(caller, "list", "--json").stdout)["changesets"]
        return {row["path"]: row for each in sets if each["id"] == id for row in each["changes"]}
