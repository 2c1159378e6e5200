"""What of the host is handed in: mounts, virtual environments, the working folder, hidden paths."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

from harness import IS_ROOT, Case, both_callers, main, root_only, shared_folder


@both_callers
class Devices(Case):
    def test_they_can_be_used_and_not_changed(self):
        before = os.stat("/dev/full")
        script = ("for node in null zero full random urandom tty; do touch -m -d @1 /dev/$node 2>/dev/null && echo $node; done\n"
                  "chmod 600 /dev/null 2>/dev/null && echo mode\n"
                  "echo x > /dev/null && head -c 2 /dev/zero | od -An -tx1")
        self.assertEqual(self.ok("--", "sh", "-c", script), " 00 00\n")
        after = os.stat("/dev/full")
        self.assertEqual((after.st_mode, after.st_mtime), (before.st_mode, before.st_mtime))


@both_callers
class Mounts(Case):
    def make(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir()
        self.own(path)
        return path

    def test_read_only_is_the_default(self):
        data = self.make("data")
        self.write("data/a", "content")
        for options in (f"{data}:/data", f"{data}:/data:ro"):
            self.assertEqual(self.sh("cat /data/a; (echo x > /data/a) 2>&-; (echo x > /data/b) 2>&-; rm -f /data/a 2>&-; chmod 777 /data/a 2>&-; "
                                     "touch -d @0 /data/a 2>&-; ls /data", "--mount", options), "contenta\n")
        self.assertEqual((data / "a").read_text(), "content")

    def test_files_written_belong_to_the_caller(self):
        out = self.make("out")
        self.sh("cd /out; echo x > f; mkdir d; ln -s f l; ln f h; mkfifo p; umask 077; echo y > secret; chmod 755 f; touch -d @1000 f", "--mount", f"{out}:/out:rw")
        for name in ("f", "d", "l", "h", "p", "secret"):
            self.assertEqual((out / name).lstat().st_uid, self.caller_id, name)
            self.assertEqual((out / name).lstat().st_gid, self.caller_id, name)
        self.assertEqual(oct((out / "secret").stat().st_mode), "0o100600")
        self.assertEqual(((out / "f").stat().st_mtime, oct((out / "f").stat().st_mode)), (1000, "0o100755"))

    def test_private_files_of_the_callers_can_be_read(self):
        self.make("data")
        self.write("data/private", "mine", 0o600)
        (self.folder / "data").chmod(0o700)
        self.assertEqual(self.sh("cat /data/private; stat -c '%a %u' /data/private", "--mount", f"{self.folder}/data:/data"), "mine600 1000\n")

    def test_a_private_script(self):
        self.assertEqual(self.ok(self.write("p.py", "print('private')\n", 0o600)), "private\n")

    def test_single_files(self):
        a, b = self.write("a", "A"), self.write("b", "B")
        out = self.sh("cat /data/one /two; (echo x > /data/one) 2>&-; echo new > /two; ls /data", "--mount", f"{a}:/data/one", "--mount", f"{b}:/two:rw")
        self.assertEqual(out, "ABone\n")
        self.assertEqual((a.read_text(), b.read_text()), ("A", "new\n"))

    def test_relative_source(self):
        self.write("a", "A")
        self.assertEqual(self.sh("cat /data/a", "--mount", ".:/data"), "A")
        self.assertEqual(self.sh("cat /data", "--mount", "./a:/data"), "A")

    def test_source_through_a_link_is_refused(self):
        """An earlier program may have made the link (tests/escape/hf_08_test.py); the refusal says where it leads."""
        data = self.make("data")
        self.make("data/inner")
        (self.folder / "link").symlink_to(data)
        for source in f"{self.folder}/link", f"{self.folder}/link/inner":
            self.assert_refused(self.run_in("--mount", f"{source}:/data", "--", "true"), 125, str(data))

    def test_source_with_odd_names(self):
        for name in ("with space", "ž🎅", "a:b", "-x", "q'uote"):
            self.write(name, name)
            self.assertEqual(self.sh("cat /data/f", "--mount", f"{self.folder}/{name}:/data/f"), name)

    def test_nested_targets(self):
        outer, inner = self.make("outer"), self.make("inner")
        self.write("outer/o", "outer ")
        (outer / "in").mkdir()
        self.write("inner/i", "inner ")
        for first, second in ((f"{outer}:/data", f"{inner}:/data/in"), (f"{inner}:/data/in", f"{outer}:/data")):
            self.assertEqual(self.sh("cat /data/o /data/in/i; ls /data/in", "--mount", first, "--mount", second), "outer inner i\n")

    def test_nested_target_without_a_place_is_refused(self):
        outer, inner = self.make("outer"), self.make("inner")
        self.assert_refused(self.run_in("--mount", f"{outer}:/data", "--mount", f"{inner}:/data/in", "--", "true"), 125, "/data/in")
        self.assertEqual(list(outer.iterdir()), [])

    def test_deep_target(self):
        data = self.make("data")
        self.write("data/a", "A")
        self.assertEqual(self.sh("cat /very/deep/place/a; ls /very", "--mount", f"{data}:/very/deep/place"), "Adeep\n")

    def test_target_below_home_and_tmp(self):
        data = self.make("data")
        self.write("data/a", "A")
        self.assertEqual(self.sh("cat ~/in/a /tmp/t/a; echo x > ~/mine; ls ~", "--mount", f"{data}:/tmp/home/in", "--mount", f"{data}:/tmp/t"), "AAin\nmine\n")

    def test_target_inside_usr(self):
        """Over something that is there; what is not there can't be made, because /usr is the host's."""
        tool = self.write("tool", "#!/bin/sh\necho replaced\n", 0o755)
        self.assertEqual(self.sh("whoami", "--mount", f"{tool}:/usr/bin/whoami"), "replaced\n")
        data = self.make("data")
        self.write("data/a", "A")
        self.assertEqual(self.sh("ls /usr/share/doc", "--mount", f"{data}:/usr/share/doc"), "a\n")
        self.assert_refused(self.run_in("--mount", f"{data}:/usr/no-such-place", "--", "true"), 125, "/usr/no-such-place")

    def test_reserved_targets_are_refused(self):
        data = self.make("data")
        for target in ("/", "/proc", "/proc/self", "/dev", "/dev/shm", "/etc", "/sys", "/usr", "/tmp", "/app/x", "/bin"):
            self.assert_refused(self.run_in("--mount", f"{data}:{target}", "--", "true"), 125, target)

    def test_sources_that_are_refused(self):
        os.mkfifo(self.folder / "fifo")
        self.own(self.folder / "fifo")
        for source in (self.folder / "missing", self.folder / "fifo", "/dev/null"):
            self.assert_refused(self.run_in("--mount", f"{source}:/data", "--", "true"), 125, str(source))

    def test_forms_that_are_refused(self):
        for text in ("", "x", ":/data", "/tmp:data", "/tmp:/data:wr", "/tmp:/a/../b", "/tmp:"):
            self.assert_refused(self.run_in("--mount", text, "--", "true"), 125, "--mount")
        self.assert_refused(self.run_in("--mount", "/tmp:/a", "--mount", "/usr:/a", "--", "true"), 125, "/a")

    def test_a_source_that_the_caller_may_not_enter(self):
        closed = self.folder / "closed"
        closed.mkdir(mode=0o700)
        (closed / "in").mkdir()
        if not self.as_user:
            os.chown(closed, 4242, 4242)  # root may enter it all the same, and decides so
            self.assertEqual(self.sh("ls /data", "--mount", f"{closed}/in:/data"), "")
        elif IS_ROOT:
            self.assert_refused(self.run_in("--mount", f"{closed}/in:/data", "--", "true"), 125, f"{closed}/in", "Permission denied")
        else:
            closed.chmod(0)
            self.assert_refused(self.run_in("--mount", f"{closed}/in:/data", "--", "true"), 125, f"{closed}/in", "Permission denied")
            closed.chmod(0o700)

    def test_programs_run_from_a_mount(self):
        tool = self.write("tool", "#!/bin/sh\necho ran $1\n", 0o755)
        self.assertEqual(self.ok("--mount", f"{self.folder}:/data", "--", "/data/tool", "x"), "ran x\n")

    def test_workdir(self):
        data = self.make("data")
        self.write("data/a", "A")
        self.assertEqual(self.sh("pwd; cat a", "--mount", f"{data}:/data", "--workdir", "/data"), "/data\nA")
        self.assertEqual(self.sh("pwd", "--workdir", "/usr/lib"), "/usr/lib\n")
        self.assertEqual(self.sh("pwd"), "/tmp/home\n")
        self.assert_refused(self.run_in("--workdir", "/no/such", "--", "true"), 125, "/no/such")
        self.assert_refused(self.run_in("--workdir", "relative", "--", "true"), 125, "relative")
        self.assert_refused(self.run_in("--workdir", "/etc/passwd", "--", "true"), 125, "/etc/passwd")

    def test_hide(self):
        self.assertEqual(self.sh("wc -c < /usr/share/dict/words 2>&- || wc -c < /usr/bin/whoami; ls /usr/share/doc | wc -l; ls /usr/bin | grep -c .",
                                 "--hide", "/usr/bin/whoami", "--hide", "/usr/share/doc", "--hide", "/usr/share/dict").split()[:2], ["0", "0"])
        self.assertEqual(self.run_in("--hide", "/usr/bin/whoami", "--", "whoami").status, 126)
        # Nothing would be hidden, and that may be a slip of the pen.
        self.assert_refused(self.run_in("--hide", "/usr/no/such/path", "--", "true"), 125, "/usr/no/such/path", "check the spelling")
        self.assert_refused(self.run_in("--hide", "/bin", "--", "true"), 125, "/bin", "symbolic link")

    def test_hide_through_a_link_and_in_a_mount(self):
        data = self.make("data")
        self.write("data/secret", "secret")
        self.write("data/open", "open")
        self.assertEqual(self.sh("cat /data/*; ls /data", "--mount", f"{data}:/data", "--hide", "/data/secret"), "openopen\nsecret\n")
        self.assertEqual(self.sh("cat /bin/whoami | wc -c", "--hide", "/bin/whoami"), "0\n")
        self.assertEqual((data / "secret").read_text(), "secret")

    def test_a_mount_may_vanish_and_change_outside(self):
        """Files that the caller changes while the program runs are seen."""
        data = self.make("data")
        with self.start("run", "--mount", f"{data}:/data", "--", "sh", "-c", "echo up; until test -e /data/new; do sleep 0.05; done; cat /data/new") as process:
            self.assertEqual(process.stdout.readline(), b"up\n")
            self.write("tmp", "fresh")
            (self.folder / "tmp").rename(data / "new")
            out, _ = process.communicate(timeout=20)
        self.assertEqual(out, b"fresh")


@root_only
class MountsOfRoot(Case):
    """Owners, and sources that hold mounts of their own."""

    def test_owners_of_files(self):
        """The caller's files are the program's; another's are nobody's, and stay closed if they are private."""
        data = self.folder / "data"
        data.mkdir(mode=0o755)
        for name, owner, mode in (("own", 0, 0o600), ("open", 4242, 0o644), ("closed", 4242, 0o600)):
            self.write(f"data/{name}", name, mode)
            os.chown(data / name, owner, owner)
        out = self.sh("cd /data; stat -c '%n %u' *; cat own open; cat closed 2>&- || echo refused", "--mount", f"{data}:/data:rw")
        self.assertEqual(out, "closed 65534\nopen 65534\nown 1000\nownopenrefused\n")

    def test_a_source_with_mounts_below(self):
        """They come along, with the same access."""
        data = self.folder / "data"
        (data / "below").mkdir(parents=True)
        subprocess.run(["/usr/bin/mount", "-t", "tmpfs", "none", data / "below"], check=True)
        self.addCleanup(subprocess.run, ["/usr/bin/umount", data / "below"], check=True)
        (data / "below/f").write_text("below")
        self.assertEqual(self.sh("cat /data/below/f; (echo x > /data/below/f) 2>&-; true", "--mount", f"{data}:/data"), "below")
        self.sh("echo new > /data/below/f", "--mount", f"{data}:/data:rw")
        self.assertEqual((data / "below/f").read_text(), "new\n")

    def test_a_file_system_without_idmapped_mounts_is_refused(self):
        lower, upper, work, merged = (self.folder / n for n in ("lower", "upper", "work", "merged"))
        for path in (lower, upper, work, merged):
            path.mkdir()
        mounted = subprocess.run(["/usr/bin/mount", "-t", "overlay", "none", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", merged], capture_output=True)
        if mounted.returncode != 0:
            self.not_covered("a mount source on overlayfs", "this host can't mount one")
        self.addCleanup(subprocess.run, ["/usr/bin/umount", merged], check=True)
        self.assert_refused(self.run_in("--mount", f"{merged}:/data", "--", "true"), 125, str(merged), "idmapped")


@functools.cache
def interpreter_outside_usr() -> Path | None:
    """A Python with a prefix of its own, as pyenv and conda have them: a copy of Debian's."""
    library = next(Path("/usr/lib").glob("python3.*/os.py"), None)
    if library is None:
        return None
    prefix = shared_folder() / "python"
    name = library.parent.name
    shutil.copytree(library.parent, prefix / "lib" / name, symlinks=True, ignore=shutil.ignore_patterns("test", "__pycache__", "config-*"))
    (prefix / "bin").mkdir()
    shutil.copy(f"/usr/bin/{name}", prefix / "bin/python3")
    return prefix / "bin/python3"


@both_callers
class Venv(Case):
    def make_venv(self, python: str) -> Path:
        venv = self.folder / "venv"
        made = subprocess.run([python, "-m", "venv", "--without-pip", str(venv)], capture_output=True, text=True)
        if made.returncode != 0:
            self.not_covered(f"a venv of {python}", made.stderr.strip().splitlines()[-1] if made.stderr else "venv failed")
        site = next(venv.glob("lib/python3*/site-packages"))
        (site / "only_here.py").write_text("where = 'the venv'\n")
        return venv

    CODE = "import sys, only_here\nprint(only_here.where, sys.prefix, sys.version_info[:2])\n"

    def test_venv_of_the_images_python(self):
        venv = self.make_venv("/usr/bin/python3")
        out = self.python(self.CODE, "--venv", str(venv))
        self.assertTrue(out.startswith(f"the venv {venv} (3, "), out)
        self.assertEqual(self.sh("echo $VIRTUAL_ENV; which python3; touch $VIRTUAL_ENV/x 2>&- || echo read-only", "--venv", str(venv)), f"{venv}\n{venv}/bin/python3\nread-only\n")

    def outside_python(self) -> Path:
        python = interpreter_outside_usr()
        if python is None:
            self.not_covered("an interpreter outside /usr", "there is no /usr/lib/python3.* to make one of")
        return python

    def test_venv_of_an_interpreter_outside_usr(self):
        python = self.outside_python()
        venv = self.make_venv(str(python))
        self.assertTrue(self.python(self.CODE, "--venv", str(venv)).startswith(f"the venv {venv} (3, "))

    def test_an_interpreters_own_folder(self):
        python = self.outside_python()
        prefix = python.parents[1].resolve()
        out = self.python("import sys, ssl, ctypes\nprint(sys.prefix)\n", "--venv", str(prefix))
        self.assertEqual(out, f"{prefix}\n")

    def test_active_venv_is_named_in_one_line(self):
        venv = self.make_venv("/usr/bin/python3")
        script = self.write("a.py", "print('ran')\n")
        ended = self.run_in(script, env={"VIRTUAL_ENV": str(venv), "PATH": f"{venv}/bin:/usr/bin:/bin"})
        self.assertEqual((ended.status, ended.text), (0, "ran\n"), str(ended))
        self.assertEqual(len(ended.own_lines()), 1, str(ended))
        self.assertIn(f"--venv {venv}", ended.own_lines()[0])
        ended = self.run_in("--venv", str(venv), script, env={"VIRTUAL_ENV": str(venv), "PATH": f"{venv}/bin:/usr/bin:/bin"})
        self.assertEqual((ended.status, ended.err), (0, b""), str(ended))

    def test_no_hint_where_python_plays_no_part(self):
        venv = self.make_venv("/usr/bin/python3")
        ended = self.run_in("--", "true", env={"VIRTUAL_ENV": str(venv), "PATH": f"{venv}/bin:/usr/bin:/bin"})
        self.assertEqual(ended.err, b"")

    def test_folders_that_are_no_venv(self):
        for path in ("/", str(self.folder), str(self.folder / "missing"), "/etc/passwd"):
            self.assert_refused(self.run_in("--venv", path, "--", "true"), 125, "--venv")


if __name__ == "__main__":
    main()
