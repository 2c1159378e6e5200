"""TTY-03: escape sequences in names: of scripts, commands, mounts, variables, policy files, flags, and in errors."""

import json
import os
import pty

from harness import callers, main
from outside import OutsideTest

EVIL = "a\x1b]0;title\x07b\u009b6n\x7f\nbelljar: all is well\rc\u202ed"


class Tty03(OutsideTest):
    def seen_by(self, argv: list[str], caller, folder: str) -> tuple[str, int]:
        """What a terminal gets to see."""
        ours, theirs = pty.openpty()
        process = caller.popen(argv, stdout=theirs, stderr=theirs, cwd=folder)
        os.close(theirs)
        seen = bytearray()
        try:
            while chunk := os.read(ours, 65536):
                seen += chunk
        except OSError:
            pass
        os.close(ours)
        return seen.decode("utf-8", "surrogateescape").replace("\r\n", "\n"), process.wait(timeout=60)

    def assert_tame(self, seen: str) -> None:
        bad = [f"{ord(c):#x}" for c in seen if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0
               or 0xDC80 <= ord(c) <= 0xDCFF or c in "\u202e"]
        self.assertEqual(bad, [], repr(seen))
        self.assertNotIn("\nbelljar: all is well", seen)

    def lines(self, caller) -> dict[str, list[str]]:
        script = self.folder / (EVIL.replace("/", "") + ".py")
        script.write_text("raise SystemExit(3)")
        script.chmod(0o644)
        folder = self.folder / EVIL
        folder.mkdir(exist_ok=True)
        fine = self.script("")
        run = [caller.belljar, "run"]
        return {
            "missing script": [*run, EVIL],
            "missing command": [*run, "--", EVIL],
            "missing command by path": [*run, "--", f"/tmp/{EVIL}"],
            "existing script": [*run, str(script)],
            "a folder as script": [*run, str(folder)],
            "unknown flag": [*run, f"--{EVIL}", fine],
            "wrong limit": [*run, "--memory", EVIL, fine],
            "wrong require": [*run, "--require", EVIL, fine],
            "wrong tier": [*run, "--isolation", EVIL, fine],
            "missing mount": [*run, "--mount", f"/{EVIL}:/data", fine],
            "mount target": [*run, "--mount", f"{folder}:/{EVIL}", fine],
            "wrong mount": [*run, "--mount", EVIL, fine],
            "wrong workdir": [*run, "--workdir", f"/{EVIL}", fine],
            "hidden path": [*run, "--hide", f"/{EVIL}", fine],
            "variable": [*run, "-e", f"{EVIL}=1", fine],
            "venv": [*run, "--venv", f"/{EVIL}", fine],
            "policy file": [*run, "--policy", f"/{EVIL}", fine],
            "policy content": [*run, "--policy", self.host_file(f"'{EVIL}' = 1\n", "evil.toml"), fine],
            "policy value": [*run, "--policy", self.host_file(f'[limits]\nmemory = "{EVIL!r}"\n', "evil2.toml"), fine],
            "unknown operation": [caller.belljar, EVIL],
            "policy operation": [caller.belljar, "policy", EVIL],
            "policy shown": [caller.belljar, "policy", "show", "-e", f"NAME={EVIL}"],
        }

    def test_on_a_terminal(self):
        for caller in callers():
            for name, argv in self.lines(caller).items():
                with self.subTest(caller=caller, name=name):
                    seen, status = self.seen_by(argv, caller, str(self.folder))
                    self.assert_tame(seen)
                    self.assertNotIn(status, (134, 139, -6, -11), seen)

    def test_in_the_record(self):
        caller = callers()[0]
        for name, argv in self.lines(caller).items():
            if argv[1] == "run":
                with self.subTest(name=name):
                    run = caller.run([argv[0], "run", "--json", *argv[2:]], cwd=self.folder)
                    self.assertEqual(run.stdout.count(b"\n"), 1)
                    self.assertIn("status", json.loads(run.stdout))
                    self.assertEqual([byte for byte in run.stdout if byte < 32 and byte != 10], [])

    def test_natively_names_act(self):
        """The positive control: a program that prints its argument as it is."""
        seen, _ = self.seen_by(["printf", "%s", EVIL], callers()[0], "/")
        self.assertIn("\x1b]0;title\x07", seen)

    def test_a_legal_name(self):
        name = "grüße €\U0001f600 'quoted' \"twice\".py"
        script = self.folder / name
        script.write_text("import sys; print(sys.argv[0])")
        script.chmod(0o644)
        for caller in callers():
            with self.subTest(caller=caller):
                run = caller.run([caller.belljar, "run", str(script)])
                self.assertEqual((run.returncode, run.stdout.decode()), (0, f"/app/{name}\n"))


if __name__ == "__main__":
    main()
