"""Workspaces: what a program changes in its view of a folder, and what diff, apply and discard make of it."""

import base64
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

from harness import IS_ROOT, USER_ID, Case, Ended, both_callers, main, root_only


def tree(folder: Path) -> dict[str, bytes | str | None]:
    """What is below the folder: content of files, None for folders, "-> TARGET" for links."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = f"-> {os.readlink(path)}" if path.is_symlink() else None if path.is_dir() else path.read_bytes()
    return found


def stamps(folder: Path) -> dict[str, tuple]:
    """What would show that somebody wrote to the folder."""
    rows = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        rows[str(path)] = (status.st_mode, status.st_uid, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return rows


class WorkspaceCase(Case):
    """The workspace is self.folder/work; changes are kept below self.folder/state."""

    def setUp(self):
        super().setUp()
        self.work = self.folder / "work"
        self.fill(self.work)

    def fill(self, work: Path) -> None:
        for folder in ("src", "sub/deep", "empty"):
            (work / folder).mkdir(parents=True)
        (work / "src/main.c").write_text("int main() {\n  return 1;\n}\n")
        (work / "one").write_text("one\n")
        (work / "sub/deep/two").write_text("two\n")
        (work / "run.sh").write_text("#!/bin/sh\n")
        (work / "run.sh").chmod(0o755)
        os.symlink("one", work / "link")
        for path in [work, *work.rglob("*")]:
            self.own_link(path)

    def own_link(self, path: Path) -> None:
        if IS_ROOT and self.as_user:
            os.chown(path, USER_ID, USER_ID, follow_symlinks=False)

    def environment(self, extra=None):
        return {**super().environment(), "XDG_STATE_HOME": str(self.folder / "state"), **(extra or {})}

    def work_run(self, code: str, *options, status: int = 0) -> Ended:
        ended = self.run_in("--workspace", "./work", *options, "--", "sh", "-c", code)
        self.assertEqual(ended.status, status, str(ended))
        return ended

    def sets(self) -> list[dict]:
        return json.loads(self.changes("list", "--json").text)["changesets"]

    def changes(self, *arguments, status: int = 0, **options) -> Ended:
        ended = self.belljar("changes", *arguments, **options)
        self.assertEqual(ended.status, status, str(ended))
        return ended

    def change(self, code: str, *options) -> str:
        """Runs the code in the workspace; the id of what it changed."""
        self.work_run(code, *options)
        return self.sets()[-1]["id"]

    def diff(self, id: str, *paths: str) -> str:
        return self.changes("diff", id, *paths).text

    def apply(self, id: str, *paths: str, status: int = 0) -> Ended:
        return self.changes("apply", id, *paths, status=status)


@both_callers
class Workspace(WorkspaceCase):
    def test_a_view_that_leaves_the_folder_alone(self):
        before = stamps(self.work)
        ended = self.work_run("pwd; cat one sub/deep/two link; ls; echo changed > one; rm -r sub; mv src source; chmod -x run.sh; "
                              "cat one; ls; stat -c '%U %a' . one source/main.c")
        self.assertEqual(ended.text, "/workspace\none\ntwo\none\nempty\nlink\none\nrun.sh\nsrc\nsub\nchanged\nempty\nlink\none\nrun.sh\n"
                                     "source\nsandbox 755\nsandbox 644\nsandbox 644\n")
        self.assertEqual(stamps(self.work), before)
        self.assertEqual(len(self.sets()), 1)
        self.assertIn(f"belljar changes diff {self.sets()[0]['id']}", str(ended))

    def test_apply_makes_the_folder_what_the_program_saw(self):
        id = self.change("echo changed > one; rm -r sub; mkdir sub; echo new > sub/new; mv src source; mkdir -p a/b/c; chmod -x run.sh; "
                         "echo '#!/bin/sh' > tool; chmod +x tool; rmdir empty; rm link; : > nothing")
        self.assertEqual([set["id"] for set in self.sets()], [id])
        self.apply(id)
        self.assertEqual(tree(self.work), {"one": b"changed\n", "sub": None, "sub/new": b"new\n", "source": None,
                                           "source/main.c": b"int main() {\n  return 1;\n}\n", "a": None, "a/b": None, "a/b/c": None,
                                           "run.sh": b"#!/bin/sh\n", "tool": b"#!/bin/sh\n", "nothing": b""})
        modes = {name: (self.work / name).stat().st_mode & 0o777 for name in ("run.sh", "tool", "one")}
        self.assertEqual(modes, {"run.sh": 0o644, "tool": 0o755, "one": 0o644})
        self.assertEqual({path.lstat().st_uid for path in self.work.rglob("*")}, {self.caller_id})
        self.assertEqual(self.sets(), [])
        self.assertEqual(list((self.folder / "state/belljar/changes").iterdir()), [])

    def test_kinds_that_change_places(self):
        id = self.change("rm one; mkdir one; echo x > one/x; rm -r sub; echo file > sub; rm link; echo plain > link")
        self.apply(id)
        found = tree(self.work)
        self.assertEqual([found[name] for name in ("one", "one/x", "sub", "link")], [None, b"x\n", b"file\n", b"plain\n"])

    def test_what_only_looks_changed_is_no_change(self):
        ended = self.work_run("touch one; cp one x; cat x > one; rm x; chmod 600 one; mkdir d; rmdir d; mv sub/deep/two t; mv t sub/deep/two")
        self.assertEqual((self.sets(), ended.own_lines()), ([], []))

    def test_the_record(self):
        record = self.record("--workspace", "./work", "--", "sh", "-c", "echo changed > one; echo new > added; rm sub/deep/two; ln -s x l; mkfifo p")
        sha = {text: hashlib.sha256(text.encode()).hexdigest() for text in ("changed\n", "new\n")}
        self.assertEqual(record["files"], [
            {"path": "/workspace/added", "saved_as": "", "size": 4, "sha256": sha["new\n"], "change": "added"},
            {"path": "/workspace/one", "saved_as": "", "size": 8, "sha256": sha["changed\n"], "change": "modified"},
            {"path": "/workspace/sub/deep/two", "saved_as": "", "size": 0, "sha256": "", "change": "deleted"}])
        self.assertEqual(record["files_skipped"], [{"path": "/workspace/p", "reason": "a named pipe"}])
        self.assertEqual(record["changes_id"], self.sets()[0]["id"])
        self.assertIsNone(self.record("--workspace", "./work", "--", "true")["changes_id"])
        self.assertIsNone(self.record("--", "true")["changes_id"])

    def test_list(self):
        self.assertEqual(self.changes("list").text.split(), ["ID", "AGE", "SIZE", "CHANGES", "WORKSPACE"])
        first = self.change("head -c 5000 /dev/zero > x")
        second = self.change("rm one")
        lines = self.changes("list").text.splitlines()
        self.assertEqual([line.split()[0] for line in lines[1:]], [first, second])
        self.assertEqual(lines[1].split()[3:], ["4.9", "KiB", "1", str(self.work)])
        row = self.sets()[0]
        self.assertEqual((row["id"], row["workspace"], row["size"]), (first, str(self.work), 5000))
        self.assertLess(row["age_s"], 60)
        self.assertEqual(row["changes"][0]["path"], "x")

    def test_list_has_what_diff_shows(self):
        self.change("ln -s /etc/passwd l; echo x > new; chmod +x new; echo x > one; rm run.sh")
        rows = {row["path"]: (row.get("link_target"), row.get("executable")) for row in self.sets()[0]["changes"]}
        self.assertEqual(rows, {"l": ("/etc/passwd", None), "new": (None, True), "one": (None, False), "run.sh": (None, None)})

    def test_diff(self):
        self.write("work/long", "".join(f"{i}\n" for i in range(100)))
        id = self.change("sed -i 's/return 1/return 0/' src/main.c; sed -i -e 3d -e 's/^50$/fifty/' -e '97a new' long; echo -n end > one; "
                         "rm sub/deep/two; head -c 2000 /dev/zero > bin; ln -s /etc/passwd l; mkdir d")
        out = self.diff(id)
        reference = self.folder / "reference"
        shutil.copytree(self.work, reference, symlinks=True)
        text = "".join(f"{i}\n" for i in range(100)).replace("2\n", "", 1).replace("50\n", "fifty\n", 1).replace("\n96\n", "\n96\nnew\n", 1)
        (reference / "long").write_text(text)
        (reference / "one").write_text("end")
        for name in ("long", "one"):
            wanted = subprocess.run(["diff", "-u", self.work / name, reference / name], capture_output=True, text=True).stdout
            self.assertIn("\n".join(wanted.split("\n")[2:]), out)
        self.assertIn("modified file src/main.c\n--- a/src/main.c\n+++ b/src/main.c\n@@ -1,3 +1,3 @@\n int main() {\n-  return 1;\n+  return 0;\n }\n", out)
        self.assertIn("deleted file sub/deep/two\n--- a/sub/deep/two\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n", out)
        self.assertIn("added file bin\nbin: binary (2.0 KiB)\n", out)
        self.assertIn('added symbolic link l -> "/etc/passwd"\n', out)
        self.assertIn("added folder d\n", out)
        self.assertEqual(self.diff(id, "sub"), "deleted file sub/deep/two\n--- a/sub/deep/two\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n")
        self.assertIn("nothing was changed at", str(self.changes("diff", id, "nowhere", status=125)))

    def test_diff_does_nothing_to_a_terminal(self):
        id = self.change("printf 'a\\033]0;title\\007\\033[2Jb\\r\\302\\233 31m\\n' > escapes; printf x > \"$(printf 'n\\033[31mame')\"")
        shown = self.diff(id)
        self.assertIn("+a", shown)
        for bad in ("\033", "\007", "\r", "\x9b"):
            self.assertNotIn(bad, shown)

    def test_diff_shows_what_would_hide(self):
        (self.work / "one").write_text("x = 1\n")
        id = self.change("printf 'x = 2\\ros.system(1)\\n\\342\\200\\250\\342\\200\\213\\n' > one; printf 'a\\r\\n' > crlf")
        shown = self.diff(id)
        self.assertIn("-x = 1\n+x = 2\\ros.system(1)\n+\\u{2028}\\u{200b}\n", shown)
        self.assertIn("+a\\r\n", shown)

    def test_names_show_what_would_hide(self):
        id = self.change("echo x > \"$(printf 'ma\\342\\200\\213in.c')\"")
        self.assertIn('added file "ma\\u200bin.c"\n', self.diff(id))
        self.assertIn('added "ma\\u200bin.c"\n', self.apply(id).text)

        name = "a\u2800b\u2028c"
        id = self.change(f"echo x > '{name}'")
        self.assertIn('added file "a\\u2800b\\u2028c"\n', self.diff(id))

    def kept(self, id: str) -> Path:
        return self.folder / "state/belljar/changes" / id

    def test_a_damaged_set_is_listed_and_can_be_discarded(self):
        whole = self.change("echo whole > one")
        for damage in (lambda set: (set / "changes.json").write_text("{"), lambda set: (set / "changes.json").unlink(),
                       lambda set: [shutil.rmtree(found) if found.is_dir() else found.unlink() for found in set.iterdir()]):
            id = self.change("echo new > two")
            damage(self.kept(id))
            row = next(row for row in self.sets() if row["id"] == id)
            self.assertTrue(row["damage"])
            self.assertEqual((row["changes"], self.sets()[-1]["id"], self.sets()[-1]["damage"]), ([], whole, None))
            self.assertRegex(self.changes("list").text, f"(?m)^{id} .*belljar changes discard {id} removes them$")
            self.changes("diff", id, status=125)
            self.apply(id, status=125)
            self.assertEqual(self.changes("discard", id).text, f"discarded {id}\n")
            self.assertEqual([row["id"] for row in self.sets()], [whole])

    def test_what_was_kept_is_checked(self):
        id = self.change("echo new one > one; echo new two > two; echo new three > three")
        contents = {row["path"]: self.kept(id) / "contents" / row["sha256"] for row in self.sets()[-1]["changes"]}
        contents["one"].write_text("bad one\n")
        contents["two"].unlink()
        shown = self.diff(id)
        self.assertIn("one: not shown: its kept content is damaged (", shown)
        self.assertIn("two: not shown: its new content is not kept any more (", shown)
        self.assertIn("+new three\n", shown)
        ended = self.apply(id, status=125)
        self.assertIn('not applied: "one": its kept content is damaged', ended.err.decode())
        self.assertIn('not applied: "two": its new content is not kept any more', ended.err.decode())
        self.assertEqual(((self.work / "one").read_text(), (self.work / "two").exists()), ("one\n", False))
        self.assertEqual((self.work / "three").read_text(), "new three\n")

    def test_a_diff_says_why_it_shows_nothing(self):
        id = self.change("echo new > one; echo new > run.sh; chmod +x run.sh; rm src/main.c")
        (self.work / "one").unlink()
        (self.work / "run.sh").write_bytes(b"x" * (5 << 20))
        (self.work / "src/main.c").unlink()
        (self.work / "src/main.c").mkdir()
        shown = self.diff(id)
        self.assertIn("one: not shown: the file is not on the host any more (", shown)
        self.assertIn("run.sh: not shown: the file on the host is too large (", shown)
        self.assertIn("src/main.c: not shown: there is no plain file on the host any more (", shown)

    def test_diff_without_the_folder(self):
        id = self.change("echo changed > one; echo new > added; rm run.sh")
        self.work.rename(self.folder / "moved")
        ended = self.changes("diff", id)
        self.assertEqual(ended.text, "added file added\n--- /dev/null\n+++ b/added\n@@ -0,0 +1 @@\n+new\n"
                         "modified file one\n--- /dev/null\n+++ b/one\n@@ -0,0 +1 @@\n+changed\n"
                         "deleted file run.sh\n")
        self.assertRegex(ended.err.decode(), r"^belljar: .*/work: No such file or directory; only what is kept can be shown.*\n$")

    def test_halves_stay_together(self):
        (self.work / ".git").mkdir()
        for name in ("HEAD", "config", "index"):
            (self.work / ".git" / name).write_text("x")
        for path in [self.work / ".git", *(self.work / ".git").iterdir()]:
            self.own_link(path)
        before = tree(self.work)
        id = self.change("rm one && ln -s /etc/passwd one; rm -r sub && ln -s x sub; mv .git .moved")
        shown = self.diff(id)
        self.assertNotIn("the host's side has changed", shown)
        ended = self.apply(id, status=125)
        self.assertIn("what comes in its place is left out", ended.err.decode())
        after = tree(self.work)
        for name in ("one", "sub", "sub/deep/two", ".git/HEAD", ".git/config", ".git/index"):
            self.assertEqual(after[name], before[name], name)
        self.assertNotIn(".moved/HEAD", after)

    def test_a_repository_does_not_come_in_parts(self):
        self.apply(self.change("mkdir -p p/objects p/refs; echo bare > p/config"))
        ended = self.apply(self.change("echo 'ref: refs/heads/m' > p/HEAD"), status=125)
        self.assertIn("git takes a folder with it for a repository", ended.err.decode())
        self.assertFalse((self.work / "p/HEAD").exists())

    def test_not_where_changes_are_kept(self):
        (self.folder / "state").mkdir()
        self.own(self.folder / "state")
        for folder in (self.folder, self.folder / "state"):
            self.assert_refused(self.run_in("--workspace", folder, "--", "true"), 125, "--workspace", "keeps changes")

    def test_patch_takes_the_diff(self):
        self.need("patch")
        id = self.change("seq 200 | grep -v 7 > one; seq 5 > new; sed -i 's/1/2/' src/main.c; rm sub/deep/two")
        copy = self.folder / "copy"
        shutil.copytree(self.work, copy, symlinks=True)
        subprocess.run(["patch", "-p1", "-s", "-E"], cwd=copy, input=self.diff(id).encode(), check=True)
        self.apply(id)
        files = lambda folder: {name: what for name, what in tree(folder).items() if what is not None}
        self.assertEqual(files(copy), files(self.work))

    def test_a_part_at_a_time(self):
        id = self.change("echo 1 > one; echo 2 > src/new; rm sub/deep/two; mkdir -p a/b; echo 3 > a/b/c")
        self.apply(id, "src", "a/b/c")
        self.assertEqual((self.work / "one").read_text(), "one\n")
        self.assertEqual(((self.work / "src/new").read_text(), (self.work / "a/b/c").read_text()), ("2\n", "3\n"))
        self.assertEqual([change["path"] for change in self.sets()[0]["changes"]], ["a", "a/b", "one", "sub/deep/two"])
        self.apply(id)
        self.assertFalse((self.work / "sub/deep/two").exists())
        self.assertEqual(self.sets(), [])

    def test_discard(self):
        before = stamps(self.work)
        id = self.change("echo 1 > one")
        self.assertEqual(self.changes("discard", id).text, f"discarded {id}\n")
        self.assertEqual((self.sets(), stamps(self.work)), ([], before))
        self.assert_refused(self.belljar("changes", "discard", id), 125, "no changes are kept")
        self.assert_refused(self.belljar("changes", "apply", "../../x"), 125, "no changes are kept")

    def test_the_host_has_changed(self):
        for what, edit in {"content": lambda f: f.write_text("mine\n"), "same size": lambda f: f.write_text("two\n"),
                           "gone": lambda f: f.unlink(), "a link": lambda f: (f.unlink(), f.symlink_to("/etc/passwd")),
                           "a folder": lambda f: (f.unlink(), f.mkdir())}.items():
            with self.subTest(what):
                shutil.rmtree(self.work)
                self.fill(self.work)
                id = self.change("echo changed > one; echo new > added; rm link")
                edit(self.work / "one")
                before = tree(self.work)
                ended = self.changes("apply", id, status=125)
                self.assertIn('nothing was applied: on the host these are not as they were when the run began: "one"', str(ended))
                self.assertEqual(tree(self.work), before)
                self.assertIn("modified file one; the host's side has changed since the run\n", self.diff(id))
                self.apply(id, "added", "link")
                self.assertEqual((self.work / "added").read_text(), "new\n")

    def test_a_folder_that_is_left_out_is_one_line(self):
        id = self.change("mkdir .vscode .vscode/in; for i in 1 2 3 4 5; do echo x > .vscode/in/$i; done; echo x > fine")
        ended = self.changes("apply", id, status=125)
        lines = ended.err.decode().splitlines()
        self.assertEqual(len(lines), 2, str(ended))
        self.assertRegex(lines[0], r'^belljar: not applied: "\.vscode" \(7 changes\): .*; to apply it all the same, name "\.vscode"$')
        self.assertIn("7 of 8 changes were left out", lines[1])
        self.assertTrue((self.work / "fine").exists())
        row, = json.loads(self.changes("apply", "--json", id, status=125).text)["left_out"]
        self.assertEqual((row["path"], row["changes"]), (".vscode", 7))

    def test_names_that_are_not_utf8(self):
        name = b"odd-\xff\xfe"
        program = f"import os; open({name!r}, 'w').write('x'); os.symlink('x', b'link-' + {name!r})"
        record = self.record("--workspace", "./work", "--", "python3", "-c", program)
        kept = {row["kind"]: row for row in self.sets()[0]["changes"]}
        self.assertEqual(base64.b64decode(kept["file"]["path_base64"]), name)
        self.assertEqual(base64.b64decode(kept["link"]["path_base64"]), b"link-" + name)
        self.assertNotIn("path_base64", self.sets()[0])
        replied = json.loads(self.changes("apply", "--json", record["changes_id"], status=125).text)
        self.assertEqual(base64.b64decode(replied["applied"][0]["path_base64"]), name)
        self.assertEqual(base64.b64decode(replied["left_out"][0]["path_base64"]), b"link-" + name)
        self.assertIn(name, os.listdir(os.fsencode(self.work)))

    def test_the_host_has_the_same_name_now(self):
        id = self.change("echo theirs > added; mkdir folder; echo x > folder/x")
        (self.work / "added").write_text("mine")
        self.changes("apply", id, status=125)
        self.assertEqual((self.work / "added").read_text(), "mine")
        (self.work / "folder").symlink_to("/tmp")
        ended = self.changes("apply", id, "folder", status=125)
        self.assertIn("folder/x", str(ended))
        self.assertFalse(Path("/tmp/x").exists())

    def test_a_folder_that_is_not_empty_any_more(self):
        id = self.change("rm -r sub")
        self.write("work/sub/deep/mine", "mine")
        self.assertIn("not empty on the host", str(self.apply(id, status=125)))
        self.assertEqual(tree(self.work / "sub"), {"deep": None, "deep/mine": b"mine"})

    def test_another_folder_in_its_place(self):
        id = self.change("echo 1 > one")
        self.work.rename(self.folder / "moved")
        self.fill(self.work)
        self.assertIn("not the folder any more", str(self.changes("apply", id, status=125)))
        shutil.rmtree(self.work)
        (self.folder / "work").symlink_to("moved")
        self.changes("apply", id, status=125)
        self.assertEqual((self.folder / "moved/one").read_text(), "one\n")

    def test_after_every_end(self):
        for status, options, code in (("timeout", ["--timeout", "1s"], "sleep 60"), ("error", [], "exit 3"),
                                      ("output", ["--output-limit", "10", "--on-output-limit", "kill"], "yes")):
            record = self.record("--workspace", "./work", *options, "--", "sh", "-c", f"echo {status} > kept; {code}")
            self.assertEqual(record["status"], status)
            self.assertIn(f"+{status}", self.diff(record["changes_id"]))

    def test_bounded_like_all_writable_space(self):
        record = self.record("--workspace", "./work", "--tmp-size", "1M", "--", "sh", "-c", "head -c 5M /dev/zero > large")
        self.assertEqual(record["status"], "disk")
        record = self.record("--workspace", "./work", "--", "sh", "-c", "truncate -s 1T sparse; truncate -s 20M fits; echo x > small")
        self.assertEqual(record.exit_status, 125)
        self.assertIn("--collect-file-size", record["files_skipped"][0]["reason"])
        self.assertEqual([row["path"] for row in record["files"]], ["/workspace/fits", "/workspace/small"])
        self.apply(record["changes_id"])
        self.assertLess((self.work / "fits").stat().st_blocks, 100)
        self.assertEqual((self.work / "fits").stat().st_size, 20 << 20)

    def test_refusals(self):
        self.assert_refused(self.run_in("--workspace", "./none", "--", "true"), 125, "--workspace ./none", "No such file")
        self.assert_refused(self.run_in("--workspace", "work/one", "--", "true"), 125, "not a folder")
        (self.folder / "through").symlink_to("work")
        self.assert_refused(self.run_in("--workspace", "./through", "--", "true"), 125, "symbolic link")
        self.assert_refused(self.run_in("--workspace", "./work", "--workspace-entries", "3", "--", "true"), 125, "more than 3")
        self.assert_refused(self.run_in("--workspace", "./work", "--mount", "./work:/workspace", "--", "true"), 125, "workspace's place")
        self.assert_refused(self.run_in("--workspace", "./work", "--collect", "/workspace/x:./x", "--", "true"), 125, "belljar changes")

    def test_programs_work_in_it(self):
        self.need("git")
        ended = self.work_run("git init -q . 2>&1 && git add -A && git -c user.name=x -c user.email=x@y commit -qm first && git status --short && "
                              "python3 -c \"import sqlite3; c = sqlite3.connect('db'); c.execute('pragma journal_mode=wal'); "
                              "c.execute('create table t(x)'); c.execute('insert into t values(1)'); c.commit(); c.close()\" && "
                              "printf 'all:\\n\\t@echo made > made\\n' > Makefile && (make -s || echo made > made) 2>/dev/null && cat made")
        self.assertEqual(ended.text, "made\n")
        id = self.sets()[-1]["id"]
        self.apply(id, status=125)
        self.assertTrue((self.work / ".git/HEAD").exists())
        self.assertFalse((self.work / ".git/config").exists())
        self.apply(id, ".git/config", ".git/hooks")
        self.assertEqual(self.git("log", "--format=%s"), "first\n")

    def git(self, *arguments: str) -> str:
        env = {**os.environ, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        return subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *arguments], cwd=self.work, env=env, check=True, capture_output=True, text=True).stdout

    def test_commits_in_a_repository_that_is_there(self):
        self.need("git")
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")
        for folder, _, names in os.walk(self.work / ".git"):
            self.own(Path(folder))
            for name in names:
                self.own(Path(folder, name))
        id = self.change("git checkout -q -b other; echo more > one; git -c user.name=x -c user.email=x@y commit -qam second; mkdir -p .git/refs/remotes/origin; "
                         "echo ref: refs/remotes/origin/main > .git/refs/remotes/origin/HEAD")
        self.apply(id)
        self.assertEqual(self.git("log", "--format=%s", "other"), "second\nfirst\n")
        self.assertEqual(len(self.git("reflog", "show", "HEAD").splitlines()), 3)
        self.assertTrue((self.work / ".git/refs/remotes/origin/HEAD").exists())
        id = self.change("mkdir -p .git/logs/objects .git/logs/hooks; echo > .git/logs/config; echo > .git/logs/objects/x")
        ended = self.apply(id, status=125)
        self.assertIn('".git/logs/objects" (2 changes): git takes a folder with it for a repository', ended.err.decode())
        self.assertFalse((self.work / ".git/logs/objects").exists())

    def test_mounts_beside_and_in_it(self):
        self.write("data", "data")
        ended = self.work_run("cat /data in/it; echo x > y", "--mount", "./data:/data", "--mount", "./data:/workspace/in/it")
        self.assertEqual(ended.text, "datadata")
        self.assertEqual([change["path"] for change in self.sets()[0]["changes"]], ["in", "y"])

    def test_many_files(self):
        for i in range(3000):
            self.write(f"work/f{i}", str(i))
        id = self.change("for i in $(seq 0 2999); do echo new$i > f$i; done", "--timeout", "100s")
        self.assertEqual(len(self.sets()[0]["changes"]), 3000)
        self.apply(id)
        self.assertEqual({(self.work / f"f{i}").read_text() for i in range(3000)}, {f"new{i}\n" for i in range(3000)})

    def test_policy_file_and_script(self):
        self.write("p.toml", 'workspace = "./work"\n')
        self.write("s.py", "import os; print(os.getcwd()); open('new', 'w').write('x')")
        ended = self.run_in("--policy", "p.toml", "s.py")
        self.assertEqual((ended.status, ended.text), (0, "/workspace\n"), str(ended))
        self.assertEqual([change["path"] for change in self.sets()[0]["changes"]], ["new"])


@both_callers
class ImagesWithAWorkspace(WorkspaceCase):
    def environment(self, extra=None):
        return super().environment({"BELLJAR_IMAGES": str(self.folder / "images"), **(extra or {})})

    def test_a_link_in_its_place_is_named(self):
        tree = self.folder / "tree"
        (tree / "etc").mkdir(parents=True)
        os.symlink("etc", tree / "workspace")
        for path in (tree, tree / "etc", tree / "workspace"):
            self.own_link(path)
        loaded = self.belljar("image", "load", "linked", "./tree")
        self.assertEqual(loaded.status, 0, str(loaded))
        self.assert_refused(self.run_in("--image", "linked", "--workspace", "./work", "--", "true"), 125,
                            "/work: it can't be mounted at /workspace: that is a symbolic link in the image")


@both_callers
class Interrupted(WorkspaceCase):
    def make_many(self, count: int) -> str:
        for i in range(count):
            self.write(f"work/f{i:03}", f"old {i}\n" * 500)
        return self.change(f"for i in f*; do sed -i s/old/new/ $i; done; mkdir made; for i in $(seq 100); do echo $i > made/$i; done; rm -r sub")

    def parts(self) -> list[Path]:
        return [path for path in self.work.rglob("*") if "belljar" in path.name]

    def kill_after(self, seconds: float, *arguments) -> None:
        with self.start(*arguments) as process:
            time.sleep(seconds)
            process.send_signal(signal.SIGKILL)
            process.communicate()

    def test_apply_killed_at_any_moment(self):
        """Every file is old or new; applying again ends it."""
        id = self.make_many(200)
        wanted = {f"f{i:03}": (f"old {i}\n" * 500, f"new {i}\n" * 500) for i in range(200)}
        seen_partly = False
        for attempt in range(25):
            if not self.sets():
                break
            self.kill_after(random.uniform(0.002, 0.03), "changes", "apply", id)
            new = [(self.work / name).read_text() == texts[1] for name, texts in wanted.items()]
            for name, texts in wanted.items():
                self.assertIn((self.work / name).read_text(), texts)
            seen_partly = seen_partly or 0 < sum(new) < len(new)
            self.assertLessEqual(len(self.parts()), 1)
        self.assertTrue(seen_partly, "no kill came in the midst of it")
        if self.sets():
            self.apply(id)
        self.assertEqual({name: (self.work / name).read_text() for name in wanted}, {name: texts[1] for name, texts in wanted.items()})
        self.assertEqual((len(list((self.work / "made").iterdir())), (self.work / "sub").exists(), self.parts()), (100, False, []))
        self.assertEqual(self.sets(), [])

    def test_run_killed_at_any_moment(self):
        """Nothing is kept, or a whole set; the workspace is untouched."""
        before = stamps(self.work)
        for attempt in range(20):
            self.kill_after(random.uniform(0.005, 0.12), "run", "--workspace", "./work", "--", "sh", "-c",
                            "for i in 1 2 3 4 5 6 7 8; do head -c 300000 /dev/urandom > r$i; done")
        self.assertEqual(stamps(self.work), before)
        for row in self.sets():
            self.assertEqual(len(row["changes"]), 8, row)
            self.diff(row["id"])
            self.changes("discard", row["id"])
        store = self.folder / "state/belljar/changes"
        (store / "new-12345678/contents").mkdir(parents=True, mode=0o700)
        for folder in (store / "new-12345678", store / "new-12345678/contents"):
            self.own(folder)
        swept = self.belljar("gc")
        self.assertEqual((swept.status, list(store.iterdir())), (0, []), str(swept))
        self.assertRegex(swept.text, r"removed \d+ unfinished sets? of changes to a workspace\n")

    def wait_until_empty(self, folder: Path) -> None:
        self.changes("list")  # clears what was left
        self.assertEqual(list(folder.iterdir()), [])

    def test_discard_killed(self):
        for attempt in range(8):
            id = self.change("for i in $(seq 300); do echo $i > n$i; done")
            self.kill_after(random.uniform(0, 0.01), "changes", "discard", id)
            for row in self.sets():
                self.assertEqual(len(row["changes"]), 300)
                self.changes("discard", row["id"])
            self.wait_until_empty(self.folder / "state/belljar/changes")

    def test_two_at_once(self):
        id = self.make_many(300)
        first, second = self.start("changes", "apply", id), self.start("changes", "apply", id)
        ends = [process.communicate() + (process.returncode,) for process in (first, second)]
        said = b"".join(err for _, err, status in ends if status != 0).decode()
        self.assertIn(0, [status for *_, status in ends])
        if said:
            self.assertTrue("another belljar" in said or "no changes are kept" in said, said)
        self.assertEqual(self.sets(), [])

    def test_two_runs_at_once_see_nothing_of_each_other(self):
        runs = [self.start("run", "--workspace", "./work", "--", "sh", "-c", f"echo {i} > one; sleep 0.3; cat one") for i in range(3)]
        for i, process in enumerate(runs):
            out, err = process.communicate()
            self.assertEqual((out, process.returncode), (f"{i}\n".encode(), 0), err)
        self.assertEqual((len(self.sets()), (self.work / "one").read_text()), (3, "one\n"))
        first, second, _ = (row["id"] for row in self.sets())
        self.apply(first)
        self.changes("apply", second, status=125)

    def test_a_full_disk_while_applying(self):
        if not IS_ROOT:
            self.not_covered("a full disk", "needs root to mount a small tmpfs")
        id = self.change("head -c 3000000 /dev/urandom > big; echo x > added; echo y > one")
        self.changes("discard", id)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=2M,uid={self.caller_id}", "small", self.work], check=True)
        self.addCleanup(subprocess.run, ["umount", self.work], check=True)
        self.fill(self.work)
        id = self.change("head -c 3000000 /dev/urandom > big; echo x > added; echo y > one")
        ended = self.apply(id, status=125)
        self.assertIn("No space left", str(ended))
        self.assertEqual(((self.work / "one").read_text(), (self.work / "added").read_text(), self.parts()), ("y\n", "x\n", []))
        self.assertEqual([change["path"] for change in self.sets()[0]["changes"]], ["big"])


@root_only
class Copied(WorkspaceCase):
    """Where no overlay can be laid over the workspace, it is copied. Overlays may be two deep: over two there can't be a third."""

    def setUp(self):
        super().setUp()
        for level in range(2):
            upper, temporary = self.folder / f"upper{level}", self.folder / f"temporary{level}"
            for folder in (upper, temporary):
                folder.mkdir()
                self.own(folder)
            if level == 0:  # an overlay's own folders may not lie on another
                self.spare = self.folder / "spare"
                self.spare.mkdir()
                subprocess.run(["mount", "-t", "tmpfs", "spare", self.spare], check=True)
                self.addCleanup(subprocess.run, ["umount", self.spare], check=True)
            for name in ("u", "w"):
                (self.spare / f"{name}{level}").mkdir()
            subprocess.run(["mount", "-t", "overlay", "-o", f"lowerdir={self.work},upperdir={self.spare}/u{level},workdir={self.spare}/w{level}",
                            "overlay", self.work], check=True)
            self.addCleanup(subprocess.run, ["umount", self.work], check=True)
            self.own(self.spare / f"u{level}")
        self.own(self.work)

    def test_the_control(self):
        """There is no overlay in it."""
        self.assertEqual(self.work_run("stat -fc %T .").text, "tmpfs\n")
        plain = self.folder / "plain"
        self.fill(plain)
        self.assertEqual(self.ok("--workspace", "./plain", "--", "stat", "-fc", "%T", "."), "overlayfs\n")

    def test_the_same_changes(self):
        before = tree(self.work)
        id = self.change("echo changed > one; rm -r sub; mkdir sub; echo new > sub/new; mv src source; chmod -x run.sh; rmdir empty; "
                         "ln -sf run.sh link; touch -d 2001-01-01 one; stat -c %U . one")
        self.assertEqual(tree(self.work), before)
        found = {(change["change"], change["kind"], change["path"]) for change in self.sets()[0]["changes"]}
        self.assertEqual(found, {("modified", "file", "one"), ("deleted", "folder", "sub/deep"), ("deleted", "file", "sub/deep/two"),
                                 ("added", "file", "sub/new"), ("deleted", "folder", "src"), ("deleted", "file", "src/main.c"),
                                 ("added", "folder", "source"), ("added", "file", "source/main.c"), ("modified", "file", "run.sh"),
                                 ("deleted", "folder", "empty"), ("modified", "link", "link")})
        self.apply(id, status=125)
        self.apply(id, "link")
        self.assertEqual(tree(self.work), {"one": b"changed\n", "sub": None, "sub/new": b"new\n", "source": None,
                                           "source/main.c": b"int main() {\n  return 1;\n}\n", "run.sh": b"#!/bin/sh\n", "link": "-> run.sh"})

    def test_nothing_changed(self):
        ended = self.work_run("touch one; ls -R > /dev/null")
        self.assertEqual((self.sets(), ended.own_lines()), ([], []))

    def test_too_large(self):
        self.write("work/large", bytes(3 << 20))
        self.assert_refused(self.run_in("--workspace", "./work", "--tmp-size", "2M", "--", "true"), 125, "--workspace", "--tmp-size")

    def test_whiteouts_are_no_marks_here(self):
        """What means something to an overlay means nothing in a copy."""
        self.work_run("python3 -c \"import os; os.setxattr('sub', 'user.overlay.opaque', b'y')\" 2>/dev/null; true")
        self.assertEqual(self.sets(), [])


class CopiedAsUser(Copied if IS_ROOT else object):
    as_user = True


if __name__ == "__main__":
    main()
