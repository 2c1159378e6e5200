"""What goes in by stdin and comes out by stdout and stderr: bytes, limits, cuts, terminals."""

import fcntl
import hashlib
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

from harness import Case, both_callers, main, record_faults

SHA_OF_STDIN = "import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"


@both_callers
class Stdin(Case):
    def test_every_byte_value_passes(self):
        data = bytes(range(256)) * 300
        self.assertEqual(self.run_in("--", "cat", data=data).out, data)

    def test_empty(self):
        self.assertEqual(self.ok("--", "wc", "-c").strip(), "0")

    def test_script_reads_it(self):
        script = self.write("sum.py", "import sys\nprint(sum(int(line) for line in sys.stdin))\n")
        self.assertEqual(self.run_in(script, data=b"1\n2\n39\n").text, "42\n")

    def test_utf8_lines(self):
        self.assertEqual(self.run_in("--", "cat", data="žluťoučký kůň 🎅\n".encode()).text, "žluťoučký kůň 🎅\n")

    def test_closed(self):
        """A caller without a stdin: the program's is empty, and no other descriptor of Belljar's takes its place."""
        ended = self.run_in("--", "sh", "-c", "cat; ls /proc/self/fd | tr '\\n' ' '", stdin=None,
                            preexec_fn=lambda: os.close(0))
        self.assertEqual((ended.status, ended.text), (0, "0 1 2 3 "), str(ended))

    def test_no_stdin_flag(self):
        self.assertEqual(self.run_in("--no-stdin", "--", "wc", "-c", data=b"secret").text.strip(), "0")

    def test_not_read_by_the_program(self):
        """200 MB that nobody reads neither hang the run nor make it fail."""
        with subprocess.Popen(["/usr/bin/head", "-c", "200M", "/dev/zero"], stdout=subprocess.PIPE) as source:
            ended = self.run_in("--", "echo", "done", stdin=source.stdout)
            source.stdout.close()
        self.assertEqual((ended.status, ended.text), (0, "done\n"), str(ended))

    def test_program_closes_it_early(self):
        ended = self.run_in("--", "sh", "-c", "head -c 3; exec <&-; sleep 0.3; echo end", data=b"abc" * 1000000)
        self.assertEqual((ended.status, ended.text), (0, "abcend\n"), str(ended))

    def test_large_pipe_comes_whole(self):
        """200 MB, as `cat FILE | belljar run` gives them."""
        size = 200 << 20
        want = hashlib.sha256()
        for _ in range(200):
            want.update(bytes(1 << 20))
        with subprocess.Popen(["/usr/bin/head", "-c", str(size), "/dev/zero"], stdout=subprocess.PIPE) as source:
            ended = self.run_in("--", "python3", "-c", "import hashlib, sys\nh = hashlib.sha256()\n"
                                "while block := sys.stdin.buffer.read(1 << 20): h.update(block)\nprint(h.hexdigest())",
                                stdin=source.stdout)
            source.stdout.close()
        self.assertEqual(ended.text.strip(), want.hexdigest(), str(ended))

    def test_file_as_stdin(self):
        path = self.write("in.bin", os.urandom(300000))
        with path.open("rb") as file:
            ended = self.run_in("--", "python3", "-c", SHA_OF_STDIN, stdin=file)
        self.assertEqual(ended.text.strip(), hashlib.sha256(path.read_bytes()).hexdigest())

    def test_folder_as_stdin(self):
        """Reading it fails for the caller; the program sees an empty stdin."""
        fd = os.open("/", os.O_RDONLY)
        ended = self.run_in("--", "wc", "-c", stdin=fd)
        os.close(fd)
        self.assertEqual((ended.status, ended.text.strip()), (0, "0"), str(ended))

    def test_slow_source(self):
        """Lines arrive when they are written, not at the end."""
        with self.start("run", "--", "cat", stdin=subprocess.PIPE) as process:
            for word in (b"one\n", b"two\n"):
                process.stdin.write(word)
                process.stdin.flush()
                self.assertTrue(select.select([process.stdout], [], [], 20)[0])
                self.assertEqual(os.read(process.stdout.fileno(), 100), word)
            process.stdin.close()
            self.assertEqual(process.wait(20), 0)

    def test_endless_source_does_not_outlive_the_program(self):
        with subprocess.Popen(["/usr/bin/yes"], stdout=subprocess.PIPE) as source:
            ended = self.run_in("--", "head", "-n", "1", stdin=source.stdout)
            source.stdout.close()
        self.assertEqual((ended.status, ended.text), (0, "y\n"))


@both_callers
class Output(Case):
    def test_fn_07_nothing_at_all(self):
        record = self.record("--", "true")
        self.assertEqual((record["status"], record.out, record.err, record["stdout_bytes_total"]), ("ok", b"", b"", 0))

    def test_fn_15_streams_are_separate(self):
        code = "echo out; echo err >&2; exit 3"
        ended = self.run_in("--", "sh", "-c", code)
        self.assertEqual((ended.status, ended.out, ended.err), (3, b"out\n", b"err\n"))
        record = self.record("--", "sh", "-c", code)
        self.assertEqual((record["status"], record["exit_code"], record.out, record.err), ("error", 3, b"out\n", b"err\n"))

    def test_fn_10_bytes_that_are_no_text(self):
        path = self.write("random", os.urandom(1000) + b"\xff")
        record = self.record("--mount", f"{path}:/data/random", "--", "cat", "/data/random")
        self.assertEqual(record.out, path.read_bytes())
        self.assertIn("stdout_base64", record)
        self.assertIn("\ufffd", record["stdout"])
        self.assertNotIn("stderr_base64", record)

    def test_fn_11_a_picture_comes_out_exactly(self):
        picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
        path = self.write("picture.png", picture)
        mount = ("--mount", f"{path}:/data/picture.png")
        self.assertEqual(self.run_in(*mount, "--", "cat", "/data/picture.png").out, picture)
        self.assertEqual(self.record(*mount, "--", "cat", "/data/picture.png").out, picture)

    def test_text_needs_no_base64(self):
        record = self.record("--", "printf", "%s\\n\\000\\033[1m", "ž🎅\u2028")
        self.assertEqual(record.out, "ž🎅\u2028\n\0\x1b[1m".encode())
        self.assertNotIn("stdout_base64", record)

    def test_fn_04_many_short_lines(self):
        """The default limit keeps what ordinary programs write; where it strikes, its name and number are told."""
        code = "for i in range(3000): print('line', i)"
        self.assertEqual(self.python(code).count("\n"), 3000)
        ended = self.run_in("--output-limit", "10K", "--on-output-limit", "kill", self.write("many.py", code))
        self.assertEqual(ended.status, 124, str(ended))
        self.assertIn("output limit of 10K", ended.own_lines()[-1])
        self.assertTrue(ended.out.startswith(b"line 0\nline 1\n"), str(ended))
        self.assertLessEqual(len(ended.out), 10240)

    def test_fn_05_exit_at_the_limit(self):
        """A program that ends in the moment in which its output passes the limit."""
        for _ in range(12):
            record = self.record("--output-limit", "4K", "--on-output-limit", "kill", "--", "head", "-c", "4097", "/dev/zero")
            self.assertIn(record["status"], ("ok", "output"))
            self.assertTrue(record["stdout_truncated"])
            self.assertEqual(record.out, bytes(4096))

    def test_exactly_the_limit_is_not_too_much(self):
        record = self.record("--output-limit", "4K", "--on-output-limit", "kill", "--", "head", "-c", "4096", "/dev/zero")
        self.assertEqual((record["status"], record["stdout_truncated"], len(record.out)), ("ok", False, 4096))

    def test_fn_06_endless_output_is_cut_cleanly(self):
        record = self.record("--output-limit", "100K", "--on-output-limit", "kill", "--", "yes", "0123456789")
        self.assertEqual((record["status"], record.exit_status), ("output", 124))
        self.assertEqual(record.out, (b"0123456789\n" * 10000)[:102400])

    def test_fn_08_limit_counts_bytes_and_cuts_no_character(self):
        record = self.record("--output-limit", "100000", "--", "python3", "-c", "print('€' * 100000)")
        self.assertEqual((record["status"], record["stdout_truncated"]), ("ok", True))
        self.assertEqual(record["stdout"], "€" * 33333)  # 99,999 bytes
        self.assertEqual(record["stdout_bytes_total"], 300001)
        self.assertNotIn("stdout_base64", record)

    def test_limit_of_nothing(self):
        record = self.record("--output-limit", "0", "--", "echo", "x")
        self.assertEqual((record["status"], record.out, record["stdout_bytes_total"]), ("ok", b"", 2))

    def test_cut_is_told(self):
        ended = self.run_in("--output-limit", "10", "--", "seq", "100")
        self.assertEqual((ended.status, ended.out), (0, b"1\n2\n3\n4\n5\n"))
        self.assertEqual(len(ended.own_lines()), 1, str(ended))
        self.assertIn("stdout was cut at the output limit of 10", ended.own_lines()[0])

    def test_program_past_the_limit_goes_on(self):
        record = self.record("--output-limit", "1K", "--", "sh", "-c", "head -c 50M /dev/zero; echo end >&2")
        self.assertEqual((record["status"], record.err, record["stdout_bytes_total"]), ("ok", b"end\n", 50 << 20))

    def test_each_stream_has_its_own_limit(self):
        record = self.record("--output-limit", "5", "--", "sh", "-c", "echo 12345678; echo abcdefgh >&2")
        self.assertEqual((record.out, record.err), (b"12345", b"abcde"))

    def test_large_output_comes_whole(self):
        ended = self.run_in("--output-limit", "100M", "--", "head", "-c", "64M", "/dev/zero")
        self.assertEqual((ended.status, len(ended.out)), (0, 64 << 20), str(ended)[-300:])

    def test_fn_48_reader_goes_away_inside(self):
        self.assertEqual(self.sh("yes | head -n 1; seq 1000000 | head -n 2; grep SigIgn /proc/self/status"),
                         "y\n1\n2\nSigIgn:\t0000000000000000\n")

    def test_fn_48_signals_are_as_a_new_program_expects(self):
        """Though the caller ignores and blocks some."""
        def ignore():
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGALRM])
        ended = self.run_in("--", "cat", "/proc/self/status", preexec_fn=ignore)
        masks = [line.split()[1] for line in ended.text.splitlines() if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]
        self.assertEqual(masks, ["0" * 16] * 3, str(ended))

    def test_reader_goes_away_outside(self):
        """`belljar run -- yes | head -1` ends, with the status that a program killed by SIGPIPE has."""
        with self.start("run", "--", "yes") as process:
            self.assertEqual(process.stdout.read(2), b"y\n")
            process.stdout.close()
            self.assertEqual(process.wait(20), 141)

    def test_closed_stdout_and_stderr(self):
        """A caller without them: the program runs, and nothing is written to a descriptor of another's."""
        note = self.folder / "status"
        fd = os.open(note, os.O_WRONLY | os.O_CREAT, 0o644)
        code = f"exec \"$@\" {fd}>&{fd} <&- >&- 2>&-"
        argv = self.argv("run", "--status-fd", str(fd), "--", "sh", "-c", "echo out; echo err >&2; exit 7")
        status = subprocess.run(["/bin/sh", "-c", code, "sh", *argv], env=self.environment(), pass_fds=[fd], timeout=30).returncode
        os.close(fd)
        record = json.loads(note.read_text())
        self.assertEqual(record_faults(record, content=False), [])
        self.assertIn((status, record["status"]), [(7, "error"), (125, "internal")])

    def test_full_device_as_stdout(self):
        """Lost output is no success, whether it is lost while the program runs or after its end."""
        for program in (["echo", "lost"], ["sh", "-c", "echo lost; sleep 5"]):
            with open("/dev/full", "wb") as full:
                ended = self.run_in("--", *program, stdout=full)
            self.assertEqual((ended.status, len(ended.own_lines())), (125, 1), str(ended))
            self.assertIn("No space left on device", ended.own_lines()[0])

    def test_full_device_in_the_record(self):
        """The record tells Belljar's own failure from a reader that went away."""
        note = self.folder / "status"
        with open("/dev/full", "wb") as full, open(note, "wb") as record:
            self.run_in("--status-fd", str(record.fileno()), "--", "echo", "lost", stdout=full, pass_fds=[record.fileno()])
        record = json.loads(note.read_text())
        self.assertEqual(record_faults(record, content=False), [])
        self.assertEqual((record["status"], record["error"]["code"]), ("internal", "output_lost"))

    def test_full_device_under_every_command(self):
        """A line, and a status that is no signal's."""
        for command in (["doctor"], ["doctor", "--json"], ["gc"], ["version"], ["version", "--json"], ["help"], ["policy", "show"],
                        ["run", "--help"], ["image", "ls"], ["image", "--help"], ["changes", "list"], ["runs", "--help"], ["calibrate", "--help"],
                        ["policy", "check", "--url", "http://example.org/"]):
            with self.subTest(command=command), open("/dev/full", "wb") as full:
                ended = self.belljar(*command, stdout=full)
                self.assertEqual(ended.status, 125, str(ended))
                self.assertEqual(ended.own_lines(), ["belljar: the output can't be written: No space left on device"], str(ended))

    def test_record_that_can_not_be_written_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            ended = self.run_in("--json", "--", "true", stdout=full)
        self.assertEqual(ended.status, 125, str(ended))
        self.assertEqual(len(ended.own_lines()), 1, str(ended))

    def test_stdout_opens_again(self):
        self.assertEqual(self.sh("echo a > /dev/stdout; echo b | tee /dev/stdout; echo c > /proc/self/fd/1"), "a\nb\nb\nc\n")
        record = self.record("--", "sh", "-c", "echo e > /dev/stderr; cat /dev/stdin")
        self.assertEqual((record.out, record.err), (b"", b"e\n"))

    def test_stdin_opens_again(self):
        self.assertEqual(self.run_in("--", "cat", "/dev/stdin", data=b"again").text, "again")

    def test_both_streams_flooded_at_once(self):
        record = self.record("--output-limit", "1M", "--", "sh", "-c", "head -c 20M /dev/zero >&2 & head -c 20M /dev/zero; wait")
        self.assertEqual((record["status"], record["stdout_bytes_total"], record["stderr_bytes_total"]), ("ok", 20 << 20, 20 << 20))

    def test_slow_reader_gets_everything(self):
        with self.start("run", "--", "head", "-c", "3M", "/dev/zero") as process:
            time.sleep(0.3)
            self.assertEqual(len(process.stdout.read()), 1 << 20)  # the output limit
            self.assertEqual(process.wait(20), 0)

    def test_status_fd(self):
        """The program's streams stay its own; the record goes to the descriptor."""
        read, write = os.pipe()
        ended = self.run_in("--status-fd", str(write), "--", "sh", "-c", "echo out; echo err >&2; exit 124", pass_fds=[write])
        os.close(write)
        with os.fdopen(read) as lines:
            record = json.loads(lines.read())
        self.assertEqual((ended.status, ended.out, ended.err), (124, b"out\n", b"err\n"))
        self.assertEqual(record_faults(record, content=False), [])
        self.assertEqual((record["status"], record["exit_code"]), ("error", 124))

    def test_status_fd_and_json_agree(self):
        read, write = os.pipe()
        ended = self.run_in("--json", "--status-fd", str(write), "--", "echo", "x", pass_fds=[write])
        os.close(write)
        with os.fdopen(read) as lines:
            short = json.loads(lines.read())
        long = json.loads(ended.out)
        self.assertEqual(long.pop("stdout"), "x\n")
        self.assertEqual(long.pop("stderr"), "")
        self.assertEqual(long, short)

    def test_status_fd_does_not_reach_the_program(self):
        read, write = os.pipe()
        ended = self.run_in("--status-fd", str(write), "--", "ls", "/proc/self/fd", pass_fds=[write])
        os.close(read)
        os.close(write)
        self.assertEqual(ended.text.split(), ["0", "1", "2", "3"])  # 3 is the listed folder


@both_callers
class Terminal(Case):
    def on_terminal(self, *arguments, typed: bytes = b"") -> tuple[int, bytes]:
        """Runs Belljar with a terminal as stdin, stdout and stderr. Returns its status and what the terminal showed."""
        master, slave = pty.openpty()
        attributes = termios.tcgetattr(slave)
        attributes[1] &= ~termios.OPOST
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        process = self.start("run", *arguments, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        os.write(master, typed)
        shown = b""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 1)[0]:
                continue
            try:
                shown += os.read(master, 65536)
            except OSError:  # EIO: no process has the terminal any more
                break
        status = process.wait(10)
        os.close(master)
        return status, shown

    def test_typed_lines_arrive(self):
        self.assertEqual(self.on_terminal("--", "head", "-n", "1", typed=b"typed\n"), (0, b"typed\n"))

    def test_program_has_no_terminal(self):
        code = "test -t 0 && echo in; test -t 1 && echo out; (: < /dev/tty) 2> /dev/null || echo none"
        self.assertEqual(self.on_terminal("--", "sh", "-c", code, typed=b"\x04"), (0, b"none\n"))

    def test_escape_sequences_become_visible(self):
        status, shown = self.on_terminal("--", "printf", "\\033]0;title\\007\\033[31mred\\r\\xff\\n")
        self.assertEqual(status, 0)
        self.assertNotIn(b"\x1b", shown)
        self.assertNotIn(b"\x07", shown)
        self.assertIn(b"\\x1b[31mred", shown)
        self.assertIn(b"\\xff", shown)

    def test_text_stays_as_it_is(self):
        self.assertEqual(self.on_terminal("--", "printf", "ž\\t🎅\\n")[1], "ž\t🎅\n".encode())

    def test_raw_where_it_is_no_terminal(self):
        self.assertEqual(self.run_in("--", "printf", "\\033[31m").out, b"\x1b[31m")


if __name__ == "__main__":
    main()
