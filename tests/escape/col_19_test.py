"""COL-19: get hooks and configuration on which tools of the host act past the protection: under other names, by nested and
bare repositories, by links and renames, by case variants, by a git folder elsewhere."""

import subprocess
from pathlib import Path

from collecting import CollectTest, tree
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


if __name__ == "__main__":
    main()
