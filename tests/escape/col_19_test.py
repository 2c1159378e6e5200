"""COL-19: get hooks and configuration on which tools of the host act past the protection: under other names, by nested and
bare repositories, by links and renames, by case variants, by a git folder elsewhere."""

import subprocess
from pathlib import Path

from collecting import CollectTest, WorkspaceTest, tree
from harness import callers, main

PLAIN = """
import subprocess
out, marker = sys.argv[1:3]
os.makedirs(out, exist_ok=True)
hook = f"#!/bin/sh\\ntouch {marker}\\n"
config = f"[core]\\n\\tfsmonitor = touch {marker} ;:\\n\\thooksPath = hooks\\n"
def write(path, text):
    os.makedirs(os.path.dirname(f"{out}/{path}"), exist_ok=True)
    with open(f"{out}/{path}", "w") as file: file.write(text)
    os.chmod(f"{out}/{path}", 0o755)
def repository(path):
    for name, text in (("HEAD", "ref: refs/heads/main\\n"), ("config", config), ("hooks/pre-commit", hook), ("hooks/post-checkout", hook),
                       ("objects/x", ""), ("refs/x", "")):
        write(f"{path}/{name}", text)
"""

TREES = {
    "in a repository": 'write(".git/hooks/pre-commit", hook); write(".git/config", config)',
    "other case": 'write(".GIT/hooks/pre-commit", hook); write(".Git/CONFIG", config); write(".ENVRC", hook)',
    "ignored characters": 'write(".g\\u200cit/hooks/pre-commit", hook); write(".git./config", config); write("git~1/config", config)',
    "nested repository": 'repository("a/b/.git")',
    "bare repository": 'repository("bare")',
    "git folder elsewhere": 'repository("innocent"); write("work/.git", "gitdir: ../innocent\\n")',
    "submodule": 'repository(".git/modules/sub"); write("sub/.git", "gitdir: ../.git/modules/sub\\n")',
    "worktree": 'write(".git/worktrees/w/HEAD", "x"); write(".git/worktrees/w/commondir", "../../../evil\\n"); repository("evil")',
    "renamed parent": 'repository("x"); os.rename(f"{out}/x", f"{out}/.git")',
    "link in its place": 'repository("real"); os.symlink("real", f"{out}/.git")',
    "other tools": 'write(".vscode/tasks.json", "x"); write(".envrc", hook); write(".husky/pre-commit", hook); write(".bashrc", hook)',
}

# Names that git, editors or shells would act on, wherever they lie.
ACTIVE = {"config", "pre-commit", "post-checkout", "commondir", "tasks.json", ".envrc", ".bashrc"}


def active(folder: Path) -> list[str]:
    return [name.decode("utf-8", "replace") for name, what in tree(folder).items()
            if isinstance(what, bytes) and (name.decode("utf-8", "replace").lower().split("/")[-1] in ACTIVE
                                            or name.lower().split(b"/")[-1] == b".git")]


class Col19(CollectTest):
    def git(self, folder: Path, *arguments: str) -> None:
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", "-C", folder, *arguments], capture_output=True, timeout=60)

    def test_nothing_active_comes(self):
        for caller in callers():
            for name, code in TREES.items():
                with self.subTest(caller=caller, tree=name):
                    marker = self.folder / "marker"
                    to = self.results(caller, name.replace(" ", "-"))
                    result = self.sandbox(f"sys.argv[1:] = ['/out', {str(marker)!r}]\n{PLAIN}\n{code}", ["--collect", f"/out:{to}"], caller)
                    self.assertEqual(result.status, "ok", result)
                    self.assertEqual(active(to), [])
                    self.assertTrue(self.reasons(result))
                    if name != "link in its place":
                        self.assertEqual(result.exit_status, 125)
                    # The control: the same tree, made natively, is full of them.
                    control = self.host_folder(f"control-{name.replace(' ', '-')}-{caller}", caller)
                    self.native(f"{PLAIN}\n{code}", caller, arguments=[str(control), str(marker)])
                    self.assertNotEqual(active(control), [])

    def test_a_hook_does_not_run_on_the_host(self):
        """The second step: the caller works in the repository that the files came to."""
        caller = callers()[0]
        for name, collects in (("attacked", True), ("control", False)):
            marker = self.folder / f"marker-{name}"
            repository = self.host_folder(name, caller)
            self.git(repository, "init", "-q")
            for hook in (repository / ".git" / "hooks").iterdir():
                hook.unlink()
            code = f"{PLAIN}\n{TREES['in a repository']}\nwrite('file', 'x')"
            if collects:
                self.sandbox(f"sys.argv[1:] = ['/out', {str(marker)!r}]\n{code}", ["--collect", f"/out:{repository}", "--collect-overwrite"],
                             caller)
            else:
                self.native(code, caller, arguments=[str(repository), str(marker)])
            self.assertTrue((repository / "file").exists())
            self.git(repository, "add", "file")
            self.git(repository, "commit", "-m", "x")
            self.assertEqual(marker.exists(), not collects, name)

    def test_what_the_caller_names_comes(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller, "named")
                probe = f"sys.argv[1:] = ['/out', 'x']\n{PLAIN}\nwrite('.envrc', hook); write('.git/hooks/pre-commit', hook); write('.git/index', 'x')"
                self.sandbox(probe, ["--collect", f"/out/.envrc:{to}", "--collect", f"/out/.git/hooks:{to}/hooks", "--collect", f"/out:{to}"],
                             caller)
                self.assertEqual({name for name, what in tree(to).items() if what != "folder"},
                                 {b".envrc", b"hooks/pre-commit", b".git/index"})


class Col19Workspace(WorkspaceTest):
    def git(self, folder: Path, *arguments: str) -> None:
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", "-C", folder, *arguments], capture_output=True, timeout=60)

    def test_nothing_active_is_applied(self):
        for caller in callers():
            for name, code in TREES.items():
                with self.subTest(caller=caller, tree=name):
                    work = self.workspace(caller, name.replace(" ", "-"))
                    result = self.change(f"sys.argv[1:] = ['/workspace', 'x']\n{PLAIN}\n{code}", work, caller)
                    self.assertEqual(result.status, "ok", result)
                    self.assertTrue(self.apply(result, caller))
                    self.assertEqual(active(work), [])
                    self.assertTrue(self.kept(caller, result.record["changes_id"]))
                    # The control: what was kept has them.
                    self.native(f"{PLAIN}\n{code}", caller, arguments=[str(work), "x"])
                    self.assertNotEqual(active(work), [])

    def test_a_repository_that_is_there(self):
        """Its hooks and configuration are neither changed nor removed, in place or by exchanging what is above them."""
        ways = {"in place": "echo evil > .git/hooks/pre-commit; echo evil >> .git/config", "removed": "rm -r .git/hooks .git/config",
                "all removed": "rm -rf .git", "exchanged": "mv .git old; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo x > .git/config",
                "a link": "mv .git real; ln -s real .git; echo evil > real/hooks/pre-commit; echo evil > real/config",
                "a file": "rm -rf .git; echo 'gitdir: /tmp/x' > .git"}
        for caller in callers():
            for name, code in ways.items():
                with self.subTest(caller=caller, way=name):
                    work = self.workspace(caller, "repository-" + name.replace(" ", "-"))
                    self.git(work, "init", "-q")
                    (work / ".git/hooks/pre-commit").write_text("mine")
                    self.give(work, caller)
                    config = (work / ".git/config").read_text()
                    result = self.change(["sh", "-c", code], work, caller)
                    self.assertEqual(result.status, "ok", result)
                    run = self.changes(caller, "apply", result.record["changes_id"])
                    self.assertEqual(run.returncode, 125, run)
                    self.assertEqual(((work / ".git/hooks/pre-commit").read_text(), (work / ".git/config").read_text()), ("mine", config))
                    self.assertFalse((work / ".git").is_symlink())
                    self.assertFalse((work / "real/config").exists() or (work / "old/config").exists())

    def test_a_hook_does_not_run_on_the_host(self):
        """The second step: the caller works in the repository after applying."""
        caller = callers()[0]
        for name, way in (("attacked", "apply"), ("named", "apply"), ("control", "native")):
            marker = self.folder / f"marker-{name}"
            repository = self.host_folder(f"second-{name}", caller)
            self.git(repository, "init", "-q")
            for hook in (repository / ".git" / "hooks").iterdir():
                hook.unlink()
            code = f"{PLAIN}\n{TREES['in a repository']}\nwrite('file', 'x')"
            if way == "apply":
                result = self.change(f"sys.argv[1:] = ['/workspace', {str(marker)!r}]\n{code}", repository, caller)
                self.apply(result, caller)
                if name == "named":
                    self.assertEqual(self.apply(result, caller, ".git/hooks", ".git/config"), {})
            else:
                self.native(code, caller, arguments=[str(repository), str(marker)])
            self.assertTrue((repository / "file").exists())
            self.git(repository, "add", "file")
            self.git(repository, "commit", "-m", "x")
            self.assertEqual(marker.exists(), name != "attacked", name)


if __name__ == "__main__":
    main()
