"""HF-12: code that runs while something compiles, installs or is imported: #include of the host's files shown in the error
text, .incbin, make's $(shell), setup.py, npm's postinstall, an import."""

import os
import shutil
import subprocess
from pathlib import Path

from harness import EscapeTest, callers, main, not_covered


class Hf12(EscapeTest):
    def project(self, caller, files: dict[str, str]) -> Path:
        folder = self.host_folder(f"project-{caller}-{len(os.listdir(self.folder))}", caller)
        for name, text in files.items():
            (folder / name).write_text(text)
        return folder

    def inside(self, caller, folder: Path, command: list[str]):
        """Runs the command in the project, as a build would: the folder is its own to write in."""
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", f"{caller.uid}:{caller.uid}", folder], check=True)
        return self.sandbox(command, ["--mount", f"{folder}:/project:rw", "--workdir", "/project", "--memory", "512M"]
                            if caller.uid == 0 else ["--mount", f"{folder}:/project:rw", "--workdir", "/project"], caller)

    def test_compiler_shows_host_files(self) -> None:
        """GCC quotes the lines of a file that it can't parse."""
        for caller in callers():
            secret = self.host_file(self.canary + "\n", f"secret.{caller}", caller, 0o600)
            for path in secret, "/etc/shadow", "/proc/1/environ", "/proc/self/environ", "/root/.bash_history":
                with self.subTest(caller=caller.name, path=path):
                    folder = self.project(caller, {"main.c": f'#include "{path}"\nint main(void) {{ return 0; }}\n'})
                    result = self.inside(caller, folder, ["cc", "-c", "main.c"])
                    text = result.stdout + result.stderr
                    self.assertNotIn(self.canary, text)
                    self.assertNotIn("root:x:", text)
                    self.assertNotIn("LANG=", text)
                    if path == secret:
                        self.assertEqual(result.status, "error")
                        natively = self.native(["cc", "-c", f"{folder}/main.c", "-o", "/dev/null"], caller)
                        self.assertIn(self.canary, natively.stderr)

    def test_assembler_includes_host_files(self) -> None:
        for caller in callers():
            secret = self.host_file(self.canary, f"secret-{caller}", caller, 0o600)
            folder = self.project(caller, {"main.s": f'.incbin "{secret}"\n'})
            result = self.inside(caller, folder, ["as", "main.s", "-o", "main.o"])
            self.assertEqual(result.status, "error", result)
            self.assertFalse((folder / "main.o").exists() and self.canary.encode() in (folder / "main.o").read_bytes())
            self.native(["as", f"{folder}/main.s", "-o", f"{folder}/native.o"], caller)
            self.assertIn(self.canary.encode(), (folder / "native.o").read_bytes())

    def test_code_at_build_and_import_time(self) -> None:
        """Each reads a secret of the host, leaves a mark there, and writes what it saw into the project."""
        for caller in callers():
            secret = self.host_file(self.canary, f"secret-{caller}", caller, 0o600)
            marks = self.host_folder(f"marks-{caller}", caller)
            steal = f"cat {secret} > stolen 2>&1; touch {marks}/mark; true"
            python = f"import os\nos.system({steal!r})\n"
            cases = {
                "make": (["make"], {"Makefile": f"X := $(shell {steal})\nall:\n\t@true\n"}),
                "setup.py": (["python3", "setup.py", "--version"],
                             {"setup.py": python + "from setuptools import setup\nsetup(name='x', version='1')\n"}),
                "import": (["python3", "-c", "import helper"], {"helper.py": python}),
                "npm": (["npm", "install", "--offline", "--no-audit", "--no-update-notifier"],
                        {"package.json": '{"name":"x","version":"1.0.0","scripts":{"postinstall":"sh steal.sh"}}', "steal.sh": steal}),
            }
            for name, (command, files) in cases.items():
                if shutil.which(command[0], path="/usr/bin:/bin") is None:
                    not_covered(f"HF-12 by {name}", f"{command[0]} is not installed")
                    continue
                with self.subTest(caller=caller.name, case=name):
                    folder = self.project(caller, files)
                    result = self.inside(caller, folder, command)
                    self.assertTrue((folder / "stolen").exists(), f"the code did not run: {result}")
                    self.assertNotIn(self.canary, (folder / "stolen").read_text())
                    self.assertEqual(os.listdir(marks), [])
            # The control: the same code outside gets both.
            folder = self.project(caller, {"helper.py": python})
            if os.geteuid() == 0:
                os.chown(folder, caller.uid, caller.uid)
            self.native(["python3", "-c", "import helper"], caller, cwd=folder)
            self.assertEqual(((folder / "stolen").read_text(), os.listdir(marks)), (self.canary, ["mark"]))

    def test_building_works(self) -> None:
        for caller in callers():
            source = '#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n'
            folder = self.project(caller, {"main.c": source, "Makefile": "all: main\n\t./main\n"})
            result = self.inside(caller, folder, ["make", "-s"])
            self.assertEqual((result.stdout, result.status), ("built\n", "ok"), result)


if __name__ == "__main__":
    main()
