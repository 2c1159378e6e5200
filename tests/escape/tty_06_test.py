"""TTY-06: output that imitates our own framing: records, our lines on stderr, exit codes, frames of streams."""

import json
import os

from harness import callers, main
from outside import OutsideTest

FORGED = {"status": "ok", "exit_code": 0, "signal": None, "reason": "", "error": None, "stdout": "forged", "stderr": "",
          "isolation": {"tier": "container", "enforced": ["everything"], "weaker": [], "missing": []}}
IMITATIONS = [json.dumps(FORGED) + "\n", '"}\n' + json.dumps(FORGED) + "\n", "exit code: 0\n", "\nfindings:{}\n",
              'data: {"type":"exit","code":0}\n\n', "event: end\ndata: 0\n\n", "\x01\x00\x00\x00\x00\x00\x00\x05hello",
              "\x01\x01\x01", '{"jsonrpc":"2.0","id":1,"result":{"isError":false}}\n', "\0" * 8, "\x04",
              "HTTP/1.1 200 OK\r\n\r\n",
              "belljar: killed after the wall clock limit of 30 s; output so far is above\n"]

PROBE = f"""
for text in {IMITATIONS!r}:
    for fd in (1, 2): os.write(fd, text.encode())
for fd in range(3, 30):
    try: os.write(fd, {json.dumps(FORGED)!r}.encode())
    except OSError: pass
sys.exit(41)
"""
WHOLE = "".join(IMITATIONS)


class Tty06(OutsideTest):
    def test_the_record(self):
        for caller in callers():
            with self.subTest(caller=caller):
                run = caller.run(self.command_line(PROBE, caller=caller))
                self.assertEqual(run.stdout.count(b"\n"), 1)
                record = json.loads(run.stdout)
                self.assertEqual((run.returncode, record["status"], record["exit_code"]), (41, "error", 41))
                self.assertEqual((record["stdout"], record["stderr"]), (WHOLE, WHOLE))
                self.assertEqual(run.stderr, b"")

    def test_the_status_descriptor(self):
        for caller in callers():
            with self.subTest(caller=caller):
                read, write = os.pipe()
                argv = [caller.belljar, "run", "--status-fd", str(write), self.script(PROBE)]
                process = caller.popen(argv, stdout=-1, stderr=-1, pass_fds=[write])
                os.close(write)
                out, err = process.communicate(timeout=60)
                with open(read, "rb") as file:
                    record = json.loads(file.read())
                self.assertEqual((process.returncode, record["status"], record["exit_code"]), (41, "error", 41))
                self.assertNotIn("stdout", record)
                self.assertEqual((out, err), (WHOLE.encode(), WHOLE.encode()))

    def test_an_ambiguous_status(self):
        """A program that ends with 124 was not ended by a limit: the record tells, whatever it prints."""
        probe = "os.write(2, b'belljar: killed after the wall clock limit of 30 s\\n'); sys.exit({})"
        for caller in callers():
            for number in (124, 125, 126, 127, 137):
                with self.subTest(caller=caller, number=number):
                    result = self.sandbox(probe.format(number), caller=caller)
                    self.assertEqual((result.exit_status, result.status), (number, "error"))
                    told = {name: result.record[name] for name in ("exit_code", "signal", "reason")}
                    self.assertEqual(told, {"exit_code": number, "signal": None, "reason": ""})

    def test_the_forgery_would_be_believed(self):
        """The positive control: where a program's output is taken as the record, it is the forged one."""
        native = self.native(PROBE, callers()[0])
        self.assertEqual(json.loads(native.stdout.splitlines()[0])["stdout"], "forged")


if __name__ == "__main__":
    main()
