"""TTY-02: escape sequences in output. Made visible on a terminal, kept byte for byte everywhere else."""

import base64
import json
import os
import pty

from harness import callers, main
from outside import OutsideTest

SEQUENCES = {
    "clipboard": b"\x1b]52;c;Y2FuYXJ5\x07",
    "title": b"\x1b]0;title\x07\x1b]2;title\x1b\\",
    "link": b"\x1b]8;;http://example.org/\x1b\\text\x1b]8;;\x1b\\",
    "report": b"\x1b[6n\x1b[c\x1b[21t",
    "device control": b"\x1bP$qm\x1b\\",
    "application": b"\x1b_Gf=100;AAAA\x1b\\",
    "privacy": b"\x1b^hidden\x1b\\",
    "8-bit CSI": b"\x9b6n",
    "8-bit OSC": b"\x9d0;title\x9c",
    "UTF-8 C1": "\u009d0;title\u009c\u009b6n\u0090q\u009c".encode(),
    "reset": b"\x1bc",
    "alternate screen": b"\x1b[?1049h",
    "charset": b"\x1b(0\x0e\x0f",
    "answerback": b"\x05",
    "bell, backspace, form feed": b"\x07\x08\x08\x0b\x0c",
    "hidden by a carriage return": b"rm -rf /\rls\x1b[8m",
    "deletes": b"\x7f\x7f",
    "right to left": "\u202e\u2066\u2069".encode(),
    "unterminated, at the end": b"\x1b]52;c;",
}
PLAIN = "plain text\n\ttab äöü € \U0001f600 漢字\n".encode()
ALLOWED = set(b"\n\t\r")  # the terminal itself makes \r\n of \n

PRINT = "import sys, base64\nfor fd in (1, 2): os.write(fd, base64.b64decode(sys.argv[1]))"


class Tty02(OutsideTest):
    def on_terminal(self, argv: list[str], caller, streams: str = "both") -> bytes:
        ours, theirs = pty.openpty()
        process = caller.popen(argv, stdout=theirs, stderr=theirs)
        os.close(theirs)
        seen = bytearray()
        try:
            while chunk := os.read(ours, 65536):
                seen += chunk
        except OSError:
            pass
        os.close(ours)
        process.wait(timeout=60)
        return bytes(seen)

    def controls_in(self, seen: bytes) -> list[str]:
        """Characters that a terminal would act on, C0 and C1, in either encoding."""
        text = seen.decode("utf-8", "surrogateescape")
        found = [f"{ord(c):#x}" for c in text if (ord(c) < 32 and ord(c) not in ALLOWED) or 0x7F <= ord(c) < 0xA0
                 or 0xDC80 <= ord(c) < 0xDCA0 or c in "\u202a\u202b\u202d\u202e\u2066\u2067\u2068"]
        lone_returns = text.replace("\r\n", "\n").count("\r")
        return found + ["lone carriage return"] * lone_returns

    def test_on_a_terminal(self):
        whole = PLAIN + b"".join(SEQUENCES.values())
        for caller in callers():
            with self.subTest(caller=caller):
                encoded = base64.b64encode(whole).decode()
                argv = [caller.belljar, "run", self.script(PRINT), encoded]
                seen = self.on_terminal(argv, caller)
                self.assertEqual(self.controls_in(seen), [], seen)
                # All that is harmless is still there, twice: once by each stream.
                self.assertEqual(seen.replace(b"\r\n", b"\n").count(PLAIN), 2)
                self.assertEqual(seen.count(b"52;c;Y2FuYXJ5"), 2)

    def test_each_alone_and_at_the_end(self):
        caller = callers()[0]
        for name, sequence in SEQUENCES.items():
            with self.subTest(name=name):
                argv = [caller.belljar, "run", self.script(PRINT), base64.b64encode(sequence).decode()]
                self.assertEqual(self.controls_in(self.on_terminal(argv, caller)), [])

    def test_cut_into_pieces(self):
        """A sequence that arrives byte by byte is one all the same."""
        probe = "import sys, base64, time\nfor byte in base64.b64decode(sys.argv[1]): os.write(1, bytes([byte])); " \
                "time.sleep(0.001)"
        whole = b"".join(SEQUENCES.values()) + PLAIN
        caller = callers()[-1]
        seen = self.on_terminal([caller.belljar, "run", self.script(probe), base64.b64encode(whole).decode()], caller)
        self.assertEqual(self.controls_in(seen), [])
        self.assertIn(PLAIN, seen.replace(b"\r\n", b"\n"))

    def test_natively_a_terminal_gets_them(self):
        whole = b"".join(SEQUENCES.values())
        argv = ["/usr/bin/python3", self.script(PRINT), base64.b64encode(whole).decode()]
        seen = self.on_terminal(argv, callers()[0])
        self.assertIn(b"\x1b]52;c;Y2FuYXJ5\x07", seen)
        self.assertTrue(self.controls_in(seen))

    def test_through_a_pipe_nothing_is_lost(self):
        whole = PLAIN + b"".join(SEQUENCES.values()) + bytes(range(256))
        for caller in callers():
            with self.subTest(caller=caller):
                run = caller.run([caller.belljar, "run", self.script(PRINT), base64.b64encode(whole).decode()])
                self.assertEqual((run.stdout, run.stderr), (whole, whole))

    def test_in_the_record_nothing_is_lost(self):
        whole = PLAIN + b"".join(SEQUENCES.values()) + bytes(range(256))
        for caller in callers():
            with self.subTest(caller=caller):
                run = caller.run(self.command_line(PRINT, caller=caller, arguments=[base64.b64encode(whole).decode()]))
                self.assertEqual([byte for byte in run.stdout if byte < 32 and byte != 10], [])
                self.assertEqual(run.stdout.count(b"\n"), 1)
                record = json.loads(run.stdout)
                for name in ("stdout", "stderr"):
                    self.assertEqual(base64.b64decode(record[f"{name}_base64"]), whole)
                text = "".join(map(chr, range(0x2100))) + "\U0001f600"
                encoded = base64.b64encode(text.encode()).decode()
                record = json.loads(caller.run(self.command_line(PRINT, caller=caller, arguments=[encoded])).stdout)
                self.assertEqual(record["stdout"], text)
                self.assertNotIn("stdout_base64", record)

    def test_the_record_on_a_terminal(self):
        """--json on a terminal: C1 and direction marks are no control characters of JSON."""
        caller = callers()[0]
        whole = b"".join(SEQUENCES.values())
        argv = [caller.belljar, "run", "--json", self.script(PRINT), base64.b64encode(whole).decode()]
        seen = self.on_terminal(argv, caller)
        self.assertEqual(self.controls_in(seen), [])
        self.assertEqual(base64.b64decode(json.loads(seen)["stdout_base64"]), whole)


if __name__ == "__main__":
    main()
