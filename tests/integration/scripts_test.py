"""Scripts: which interpreter runs them, what they see of themselves, and those that are refused."""

import os
import socket
import time
from pathlib import Path

from harness import IS_ROOT, Case, both_callers, main


@both_callers
class Scripts(Case):
    def test_by_extension(self):
        scripts = {
            "a.py": "import sys; print('py', sys.argv[1:])", "a.sh": "echo sh $# ${BASH_VERSION:+bash}",
            "a.js": "console.log('js', process.argv.length)", "a.pl": 'print "pl @ARGV\\n"',
            "a.mjs": "console.log(import.meta.url)", "a.cjs": "console.log(require('path').basename(__filename))",
        }
        wanted = {"a.py": "py ['x']", "a.sh": "sh 1 bash", "a.js": "js 3", "a.pl": "pl x", "a.mjs": "file:///app/a.mjs", "a.cjs": "a.cjs"}
        for name, code in scripts.items():
            if name.endswith("js"):
                self.need("node")
            self.assertEqual(self.ok(self.write(name, code + "\n"), "x").strip(), wanted[name])

    def test_by_hash_bang(self):
        for line, wanted in (("#!/bin/sh", "sh"), ("#!/usr/bin/env bash", "bash"), ("#! /usr/bin/bash -e", "bash"), ("#!/usr/bin/env -S bash -u", "bash")):
            script = self.write("tool", f"{line}\ncat /proc/$$/comm\n")
            self.assertEqual(self.ok(script), f"{wanted}\n", line)
        script = self.write("t", "#!/usr/bin/env python3\nimport sys; print(sys.argv)\n")
        self.assertEqual(self.ok(script, "a b"), "['/app/t', 'a b']\n")
        self.assertEqual(self.ok(self.write("awk", "#!/usr/bin/awk -f\nBEGIN { print 6 * 7 }\n")), "42\n")

    def test_extension_wins_over_hash_bang(self):
        self.assertEqual(self.ok(self.write("a.py", "#!/bin/false\nprint('python')\n")), "python\n")

    def test_by_descriptor(self):
        fd = os.memfd_create("job.py")
        self.addCleanup(os.close, fd)
        os.write(fd, b"import sys; print(sys.argv, __file__)\n")
        self.assertEqual(self.ok(f"/proc/self/fd/{fd}", "x", pass_fds=[fd]), "['/app/job.py', 'x'] /app/job.py\n")
        self.assertEqual(self.ok(f"/dev/fd/{fd}", pass_fds=[fd]), "['/app/job.py'] /app/job.py\n")
        file = os.open(self.write("by-name.sh", "echo $0\n"), os.O_RDONLY)
        self.addCleanup(os.close, file)
        self.assertEqual(self.ok(f"/proc/self/fd/{file}", pass_fds=[file]), "/app/by-name.sh\n")
        unnamed = os.memfd_create("")
        self.addCleanup(os.close, unnamed)
        self.assert_refused(self.run_in(f"/proc/self/fd/{unnamed}", pass_fds=[unnamed]), 125, "is empty and has none of the extensions")

    def test_need_not_be_executable_and_is_not_changed(self):
        script = self.write("a.sh", "echo x; (echo y >> $0) 2>&-; rm -f $0 2>&-; ls -l $0 | cut -c1-10\n", 0o400)
        self.assertEqual(self.ok(script), "x\n-r-xr-xr-x\n")
        self.assertEqual(script.read_text()[:6], "echo x")

    def test_arguments_that_look_like_options(self):
        script = self.write("args.py", "import sys; print(sys.argv[1:])\n")
        words = ["--memory", "-1", "--", "--json", "-e", "", "a b", "ž🎅", "--help", "-"]
        self.assertEqual(self.ok(script, *words), f"{words}\n")
        self.assertEqual(self.ok("--", "python3", "-c", "import sys; print(sys.argv[1:])", *words), f"{words}\n")

    def test_many_and_long_arguments(self):
        script = self.write("args.py", "import sys; print(len(sys.argv), len(sys.argv[1]))\n")
        self.assertEqual(self.ok(script, "x" * 100000, *["y"] * 5000), "5002 100000\n")

    def test_names(self):
        for name in ("with space.py", "ž🎅.py", "-dash.py", "a'b.py", "dots..py", "x" * 200 + ".py"):
            self.write(name, "print('ran')\n")
            self.assertEqual(self.ok(f"./{name}"), "ran\n", name)

    def test_relative_and_linked_paths(self):
        self.write("real.py", "import os, sys; print(sys.argv[0])\n")
        (self.folder / "link.py").symlink_to("real.py")
        self.assertEqual(self.ok("real.py"), "/app/real.py\n")
        self.assertEqual(self.ok("./link.py"), "/app/link.py\n")

    def test_imports_of_neighbours_are_not_there(self):
        """Only the script goes in; its folder does not."""
        self.write("neighbour.py", "")
        self.assertEqual(self.run_in(self.write("a.py", "import neighbour\n")).status, 1)
        self.assertEqual(self.ok("--mount", f"{self.folder}:/data", "--", "python3", "/data/a.py"), "")

    def test_without_a_newline_at_the_end_and_with_a_byte_order_mark(self):
        self.assertEqual(self.ok(self.write("a.py", b"\xef\xbb\xbfprint('bom')")), "bom\n")
        self.assertEqual(self.ok(self.write("a.sh", "echo end")), "end\n")

    def test_script_that_changes_while_it_runs(self):
        """It was taken in whole at the start."""
        script = self.write("slow.sh", "read line\necho $line\necho old\n")
        process = self.start("run", script, stdin=-1)
        time.sleep(0.3)
        self.write("slow.sh", "read line\necho $line\necho new\n")
        out, _ = process.communicate(b"go\n", timeout=20)
        self.assertEqual(out, b"go\nold\n")

    def test_empty_python_script(self):
        for name in ("a.py", "a.sh", "a.pl"):
            self.assertEqual(self.ok(self.write(name, "")), "")

    def test_windows_line_ends(self):
        self.assertEqual(self.ok(self.write("a.py", "print('crlf')\r\nprint('too')\r\n")), "crlf\ntoo\n")
        self.assertEqual(self.ok(self.write("a.pl", "print 'crlf';\r\n")), "crlf")
        for name in ("a.sh", "tool"):
            self.assert_refused(self.run_in(self.write(name, "#!/bin/sh\r\necho x\r\n")), 125, name, "Windows line ends")

    def test_interpreter_that_is_missing(self):
        self.assert_refused(self.run_in(self.write("tool", "#!/usr/bin/no-such-interpreter\n")), 127, "/usr/bin/no-such-interpreter")


@both_callers
class BadScripts(Case):
    """Each is refused with one line that says what would be right."""

    def test_missing(self):
        self.assert_refused(self.run_in(self.folder / "missing.py"), 125, "missing.py", "no such script")
        self.assert_refused(self.run_in(""), 125, "name is empty")
        self.assert_refused(self.run_in(self.write("a.py", "") / "below.py"), 125, "Not a directory")

    def test_folder(self):
        self.assert_refused(self.run_in(self.folder), 125, "this is a folder")
        (self.folder / "d.py").mkdir()
        self.assert_refused(self.run_in(self.folder / "d.py"), 125, "this is a folder")

    def test_unreadable(self):
        script = self.write("a.py", "print('x')\n", 0o000)
        if self.as_user:
            self.assert_refused(self.run_in(script), 125, "Permission denied")
        else:
            self.assertEqual(self.ok(script), "x\n")

    def test_of_another_user(self):
        if not IS_ROOT:
            self.not_covered("a script of another user's", "the tests don't run as root")
        script = self.write("a.py", "print('x')\n", 0o600)
        os.chown(script, 4242, 4242)
        if self.as_user:
            self.assert_refused(self.run_in(script), 125, "Permission denied")
        else:
            self.assertEqual(self.ok(script), "x\n")

    def test_no_interpreter_known(self):
        self.assert_refused(self.run_in(self.write("empty", "")), 125, "is empty")
        self.assert_refused(self.run_in(self.write("notes.txt", "hello\n")), 125, "has no #! line")
        self.assert_refused(self.run_in(self.write("tool", "#!\n")), 125, "names no interpreter")
        self.assert_refused(self.run_in(self.write("tool", "#!python3\n")), 125, "absolute path")
        self.assert_refused(self.run_in(self.write("tool", "#!/" + "x" * 400 + "\n")), 125, "longer than")
        self.assert_refused(self.run_in(self.write("tool", b"#!/bin/sh\0x\n")), 125, "NUL")

    def test_a_compiled_program(self):
        ended = self.run_in("/usr/bin/true")
        self.assert_refused(ended, 125, "compiled program")
        advice = ended.err.decode().strip().split("run it with: belljar ")[1].split()
        self.assertEqual(self.belljar(*advice).status, 0, advice)  # the advice works

    def test_large(self):
        path = self.folder / "large.py"
        with path.open("wb") as file:
            file.truncate(300 << 20)
        self.own(path)
        self.assert_refused(self.run_in(path), 125, "300M", "too large")

    def test_sixteen_megabytes_are_fine(self):
        self.assertEqual(self.ok(self.write("a.py", b"print('big')\n" + b"#" * (15 << 20))), "big\n")

    def test_special_files(self):
        os.mkfifo(self.folder / "fifo.py")
        self.own(self.folder / "fifo.py")
        with socket.socket(socket.AF_UNIX) as server:
            os.chdir(self.folder)
            server.bind("sock.py")
            os.chdir("/")
            self.own(self.folder / "sock.py")
            self.assert_refused(self.run_in("./sock.py", patience=10), 125, "sock.py")
        self.assert_refused(self.run_in("./fifo.py", patience=10), 125, "not a regular file")
        self.assert_refused(self.run_in("/dev/null", patience=10), 125, "not a regular file")
        self.assert_refused(self.run_in("/dev/zero", patience=10), 125, "not a regular file")

    def test_link_in_a_circle(self):
        (self.folder / "a.py").symlink_to("a.py")
        self.assert_refused(self.run_in("./a.py"), 125, "a.py")

    def test_no_python_in_the_image(self):
        hidden = [word for path in sorted(Path("/usr/bin").glob("python3*")) if not path.is_symlink() for word in ("--hide", str(path))]
        ended = self.run_in(*hidden, self.write("a.py", "print(1)\n"))
        self.assertIn(ended.status, (126, 127), str(ended))
        self.assert_refused(ended, ended.status, "python3")

    def test_names_that_could_fool_a_terminal(self):
        name = "evil\x1b[2J\n\u202e.py"
        ended = self.run_in(self.folder / name)
        self.assert_refused(ended, 125)
        self.assertNotIn(b"\x1b", ended.err)
        self.assertNotIn("\u202e".encode(), ended.err)


if __name__ == "__main__":
    main()
