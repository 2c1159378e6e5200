"""COL-11: names that are odd for shells, terminals, text encodings and other systems come back as they are."""

import base64
import os

from collecting import CollectTest, WorkspaceTest, tree
from harness import callers, main

NAMES = [b"new\nline", b"tab\t", b"\x1b[31m\x1b]0;title\x07", b"quote\"'`", b"back\\slash", b"-rf", b"--", b"...", b" ", b"trailing ",
         b"trailing.", b"\xff\xfe", b"half \xe2\x82", "é".encode(), "e\u0301".encode(), "\u202etxt.exe".encode(), "\u200b".encode(), b"n" * 255,
         b"%2e%2e", b"%2e%2e%2f", b"C:", b"C:\\x", b"*", b"?", b"$(touch x)", b"\x7f", "\u009b6n".encode(), b"CON", b"a:b", b"\x01"]

PROBE = f"""
names = {NAMES!r}
os.mkdir("/out/d")
for number, name in enumerate(names):
    open(b"/out/" + name, "wb").write(str(number).encode())
    os.makedirs(b"/out/d/" + name)
    open(b"/out/d/" + name + b"/" + name, "wb").write(b"deep")
    os.symlink(b"x", b"/out/l" + name[:200])
"""


def exact(row: dict, key: str) -> bytes:
    return base64.b64decode(row[key + "_base64"]) if key + "_base64" in row else row[key].encode()


class Col11(CollectTest):
    def test_names_come_back(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller)
                result = self.fetch(PROBE, to, caller)
                found = tree(to)
                for number, name in enumerate(NAMES):
                    self.assertEqual(found.pop(name), str(number).encode(), name)
                    self.assertEqual(found.pop(b"d/" + name), "folder", name)
                    self.assertEqual(found.pop(b"d/" + name + b"/" + name), b"deep", name)
                self.assertEqual(found, {b"d": "folder"})
                paths = {exact(row, "path") for row in result.record["files"]}
                self.assertEqual(paths, {b"/out/" + name for name in NAMES} | {b"/out/d/" + name + b"/" + name for name in NAMES})
                for row in result.record["files"]:
                    self.assertTrue(os.path.exists(exact(row, "saved_as")), row)
                skipped = {exact(row, "path") for row in result.record["files_skipped"]}
                self.assertEqual(skipped, {b"/out/l" + name[:200] for name in NAMES})

    def test_messages_are_tame(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller, "tame")
                argv = [caller.belljar, "run", "--collect", f"/out:{to}", self.script(PROBE)]
                run = caller.run(argv)
                lines = run.stderr.splitlines()
                for line in lines[:-1]:
                    self.assertTrue(line.startswith(b"belljar: not collected: "), line)
                self.assertIn(b"more were left behind", lines[-1])
                text = run.stderr.decode()
                self.assertEqual([c for c in text if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u200f"], [])
                record = caller.run([*argv[:2], "--json", *argv[2:]]).stdout
                self.assertEqual([byte for byte in record if byte < 32 and byte != 10], [])

    def test_natively_such_names_act(self):
        """The positive control: a plain listing writes them as they are."""
        here = self.host_folder("native", callers()[0])
        (here / "\x1b]0;title\x07").write_text("")
        self.assertIn(b"\x1b]0;title\x07", callers()[0].run(["ls", str(here)]).stdout)


class Col11Workspace(WorkspaceTest):
    def test_names_come_back(self):
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller)
                result = self.change(PROBE.replace('"/out/', '"/workspace/'), work, caller)
                id = result.record["changes_id"]
                for command in (["list"], ["list", "--json"], ["diff", id]):
                    out = self.changes(caller, *command).stdout.decode()
                    self.assertEqual([c for c in out if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u200f"], [])
                named = caller.run([os.fsencode(caller.belljar), b"changes", b"apply", id.encode(), NAMES[0], b"d/" + NAMES[11]])
                self.assertEqual(named.returncode, 0, named)
                self.assertEqual(named.stdout.count(b"\n"), 3)  # a file, a folder, and the file in it
                left = caller.run([caller.belljar, "changes", "apply", id])
                for text in (named.stdout, left.stdout, left.stderr):
                    self.assertEqual([byte for byte in text if byte < 32 and byte != 10], [])
                found = tree(work)
                for number, name in enumerate(NAMES):
                    self.assertEqual(found[name], str(number).encode(), name)
                    self.assertEqual(found[b"d/" + name + b"/" + name], b"deep", name)
                self.assertNotIn("link", found.values())


if __name__ == "__main__":
    main()
