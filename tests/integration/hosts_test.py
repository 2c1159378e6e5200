"""Hosts and callers that lack something: what still works there, and what is refused with the reason and the remedy."""

import os
import resource
import signal
import subprocess
import time

from harness import IS_ROOT, USER_ID, Case, Ended, both_callers, cgroup_mounts, main, root_only, shared_folder


class Elsewhere(Case):
    """Runs Belljar after shell commands that make the host look different, in a mount namespace of their own."""

    def elsewhere(self, setup: str, *arguments, unshare=("-m",), **options):
        """`setup` runs as root in new namespaces, then Belljar as the caller of this case."""
        inner = self.argv(*arguments)
        outer = ["/usr/bin/unshare", *unshare, "/bin/sh", "-ec", f'{setup}\nexec "$@"', "sh", *inner]
        options.setdefault("env", self.environment())
        ended = subprocess.run(outer, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, cwd=self.folder, **options)
        return Ended(ended.returncode, ended.stdout, ended.stderr, 0)

    def need_root(self, what: str):
        if not IS_ROOT:
            self.not_covered(what, "the tests don't run as root")


@both_callers
class Hosts(Elsewhere):
    def test_masked_proc(self):
        """As in a Docker container: the remedy is named."""
        self.need_root("a masked /proc")
        setup = "mount --bind /dev/null /proc/interrupts; mount -t tmpfs -o ro none /proc/fs; mount --bind -o ro /proc/sys /proc/sys"
        self.assert_refused(self.elsewhere(setup, "run", "--", "true"), 125, "/proc", "systempaths=unconfined")
        doctor = self.elsewhere(setup, "doctor")
        self.assertNotEqual(doctor.status, 0, str(doctor))
        self.assertIn("systempaths=unconfined", doctor.text)

    def test_user_namespaces_off(self):
        self.need_root("user namespaces switched off")
        if not self.as_user:
            ended = self.elsewhere("echo 0 > /proc/sys/user/max_user_namespaces", "run", "--", "true", unshare=("-r",))
            self.assert_refused(ended, 125, "user namespaces are turned off here", "sysctl user.max_user_namespaces=10000")
            return
        argv = self.argv("run", "--", "true")
        at = argv.index(str(shared_folder() / "belljar"))
        code = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
        ended = subprocess.run([*argv[:at], "/usr/bin/unshare", "-r", "/bin/sh", "-ec", code, "sh", *argv[at:]], env=self.environment(),
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertEqual(ended.returncode, 125, ended)
        self.assertEqual(len(ended.stderr.splitlines()), 1, ended)
        self.assertIn(b"user.max_user_namespaces", ended.stderr)

    def test_uid_ranges_all_given_away(self):
        """By subuid(5), as where a tool gives every user very many."""
        self.need_root("a full /etc/subuid")
        if self.as_user:
            return  # an ordinary user's sandbox takes no range
        listing = self.write("subuid", f"somebody:{0x70000000}:{0x10000000}\n")
        ended = self.elsewhere(f"mount --bind {listing} /etc/subuid", "run", "--", "true")
        self.assert_refused(ended, 125, "/etc/subuid and /etc/subgid give away all uids from 1879048192 to 2147483647", "leave some of them out")

    def test_cgroups_read_only(self):
        """Limits that nobody named are held in a weaker way, and the result says so; named ones are refused."""
        self.need_root("a read-only cgroup file system")
        setup = "\n".join(f"mount -o remount,bind,ro {mount}" for mount in cgroup_mounts())
        ended = self.elsewhere(setup, "run", "--require", "files", "--", "echo", "ran")
        self.assertEqual((ended.status, ended.text), (0, "ran\n"), str(ended))
        for flags in (("--memory", "64M"), ("--cpus", "0.5"), ("--tasks", "50"), ("--require", "memory")):
            self.assert_refused(self.elsewhere(setup, "run", *flags, "--", "true"), 125, flags[0])
        if not self.as_user:  # root is not told to be root
            refused = self.elsewhere(setup, "run", "--memory", "64M", "--", "true")
            self.assert_refused(refused, 125, "have the cgroup file system mounted writable")
            self.assertNotIn(b"run as root", refused.err)
        record = self.elsewhere(setup, "run", "--json", "--", "python3", "-c", "b = []\nwhile True: b.append(bytearray(4 << 20))")
        self.assertIn('"status":"memory"', record.text.replace(" ", ""), str(record))

    def test_root_of_a_user_namespace(self):
        """As in a rootless container: only one id is mapped, and root there is an ordinary user."""
        argv = self.argv("run", "--", "sh", "-c", "echo ran; cat /proc/self/uid_map")
        at = argv.index(str(shared_folder() / "belljar"))
        ended = subprocess.run([*argv[:at], "/usr/bin/unshare", "-r", *argv[at:]], env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout[:4]), (0, b"ran\n"), ended)

    def run_folder_on(self, options: str, *arguments) -> Ended:
        """Belljar with the folder of its locks on a tmpfs of its own."""
        self.need_root("a full /run or /tmp")
        place = self.folder / "run" if self.as_user else "/run"
        (self.folder / "run").mkdir(exist_ok=True)
        setup = f"mount -t tmpfs -o mode=777,{options} none {place}; head -c 9k /dev/zero > {place}/fill 2>&- || true"
        return self.elsewhere(setup, *arguments, env=self.environment({"XDG_RUNTIME_DIR": str(self.folder / "run")}))

    def test_tmp_of_the_host_is_full(self):
        """A sandbox needs no byte of it; where not even an empty file can be made, that is said."""
        ended = self.run_folder_on("size=4k", "run", "--", "sh", "-c", "head -c 1M /dev/zero > /tmp/x; ls /tmp/x")
        self.assertEqual((ended.status, ended.text), (0, "/tmp/x\n"), str(ended))
        self.assert_refused(self.run_folder_on("nr_inodes=2", "run", "--", "true"), 125, "run/belljar", "No space left")
        self.assert_refused(self.run_folder_on("nr_inodes=3", "run", "--", "true"), 125, "run/belljar/", "No space left")

    def test_cache_on_a_full_disk(self):
        self.need_root("a full disk")
        cache = self.folder / "cache"
        cache.mkdir()
        place = cache if self.as_user else "/var/cache"
        setup = f"mount -t tmpfs -o size=64k,mode=777 none {place}; head -c 99k /dev/zero > {place}/fill 2>&- || true"
        ended = self.elsewhere(setup, "run", "--", "true", env=self.environment({"XDG_CACHE_HOME": str(cache)}))
        self.assert_refused(ended, 125, "cache", "No space left")

    def test_cache_that_can_not_be_written(self):
        self.need_root("a cache that can't be written")
        if self.as_user:
            ended = self.run_in("--", "true", env={"HOME": "/proc"})
            self.assert_refused(ended, 125, "/proc/.cache/belljar", "XDG_CACHE_HOME")
            ended = self.run_in("--", "true", env={"HOME": ""})
            self.assert_refused(ended, 125, "HOME")
            return
        ended = self.elsewhere("mount -t tmpfs none /var/cache; mount -o remount,ro /var/cache", "run", "--", "true")
        self.assert_refused(ended, 125, "/var/cache/belljar")

    def test_cache_of_somebody_else_is_not_trusted(self):
        self.need_root("a cache of another user's")
        cache = self.folder / "cache"
        (cache / "belljar").mkdir(parents=True)
        os.chown(cache / "belljar", 4242, 4242)
        if self.as_user:
            ended = self.run_in("--", "true", env={"XDG_CACHE_HOME": str(cache)})
        else:
            ended = self.elsewhere(f"mount --bind {cache} /var/cache", "run", "--", "true")
        self.assert_refused(ended, 125, "belongs to another user")

    def test_fresh_cache_and_a_strict_umask(self):
        """The image must be readable inside whatever the caller's umask is, and be made only once."""
        cache = self.folder / "cache"
        cache.mkdir()
        self.own(cache)
        code = "getent passwd root | cut -d: -f1; awk 'BEGIN { print 42 }'; ls -ld /etc | cut -c1-10"
        setup = "" if self.as_user else f"mount --bind {cache} /var/cache\n"
        if not IS_ROOT:
            ended = self.run_in("--", "sh", "-c", code, env={"XDG_CACHE_HOME": str(cache)}, preexec_fn=lambda: os.umask(0o077))
            return self.assertEqual((ended.status, ended.text), (0, "root\n42\ndrwxr-xr-x\n"), str(ended))
        for _ in range(2):
            ended = self.elsewhere(setup + "umask 077", "run", "--", "sh", "-c", code, env=self.environment({"XDG_CACHE_HOME": str(cache)}))
            self.assertEqual((ended.status, ended.text), (0, "root\n42\ndrwxr-xr-x\n"), str(ended))

    def test_many_callers_make_the_cache_at_once(self):
        cache = self.folder / "cache"
        cache.mkdir()
        self.own(cache)
        if not self.as_user:
            setup = f"mount --bind {cache} /var/cache\nfor i in 1 2 3 4 5 6; do \"$@\" & done; wait\ntrue"
            ended = self.elsewhere(setup, "run", "--", "echo", "made")
            return self.assertEqual(ended.text, "made\n" * 7, str(ended))
        started = [self.start("run", "--", "echo", "made", env={"XDG_CACHE_HOME": str(cache)}) for _ in range(6)]
        self.assertEqual([process.communicate(timeout=60) for process in started], [(b"made\n", b"")] * 6)

    def test_few_descriptors(self):
        for most in (4, 8, 16):
            ended = self.run_in("--", "echo", "ran", preexec_fn=lambda n=most: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            if ended.status != 0:
                self.assertEqual((ended.status, ended.out, len(ended.own_lines())), (125, b"", 1), str(ended))
                self.assertEqual(len(ended.err.splitlines()), 1, str(ended))

    def test_few_processes(self):
        argv = self.argv("run", "--", "true")
        at = argv.index(str(shared_folder() / "belljar"))
        ended = subprocess.run([*argv[:at], "/usr/bin/prlimit", "--nproc=0", *argv[at:]], env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertEqual((ended.returncode, len(ended.stderr.splitlines())), (125, 1), ended)
        self.assertIn(b"Resource temporarily unavailable", ended.stderr)

    def test_small_file_limit_of_the_callers(self):
        """RLIMIT_FSIZE of the caller must not kill Belljar half way."""
        ended = self.run_in("--", "echo", "ran", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
        if ended.status != 0:
            self.assertEqual((ended.status, len(ended.own_lines())), (125, 1), str(ended))

    def test_working_folder_that_is_gone(self):
        gone = self.folder / "gone"
        gone.mkdir()
        self.own(gone)
        argv = self.argv("run", "--", "echo", "ran")
        ended = subprocess.run(["/bin/sh", "-c", f'cd {gone}; rmdir {gone}; exec "$@"', "sh", *argv], env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout), (0, b"ran\n"), ended)

    def test_empty_environment(self):
        argv = self.argv("run", "--", "echo", "ran")
        environment = {} if not self.as_user else {"HOME": self.environment()["HOME"]}
        ended = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout), (0, b"ran\n"), ended)

    def test_stopped_supervisor_does_not_stop_the_deadline(self):
        nap = f"31.{os.getpid()}{int(self.as_user)}"
        process = self.start("run", "--timeout", "300ms", "--", "sh", "-c", f"echo up; exec sleep {nap}")
        process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        self.assertTrue(self.sleeps(nap))
        deadline = time.monotonic() + 8
        while self.sleeps(nap) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertFalse(self.sleeps(nap))
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 124, err)

    @staticmethod
    def sleeps(nap: str) -> bool:
        return subprocess.run(["/usr/bin/pgrep", "-f", f"^sleep {nap}$"], capture_output=True).returncode == 0


@root_only
class SupplementaryGroups(Case):
    """An ordinary user whose groups can't be dropped: `weaker`, and no mount may lean on them."""

    def test_mounts_are_not_opened_by_a_group(self):
        data = self.folder / "data"
        data.mkdir(mode=0o750)
        os.chown(data, 0, 4343)
        (data / "a").write_text("A")
        argv = ["/usr/bin/setpriv", f"--reuid={USER_ID}", f"--regid={USER_ID}", "--groups=4343", str(shared_folder() / "belljar"), "run"]
        environment = {"HOME": str(shared_folder() / "home"), "PATH": "/usr/bin:/bin"}
        run = lambda *words: subprocess.run([*argv, *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        refused = run("--mount", f"{data}:/data", "--", "true")
        self.assertEqual((refused.returncode, len(refused.stderr.splitlines())), (125, 1), refused)
        self.assertIn(b"supplementary group", refused.stderr)
        record = run("--json", "--", "id", "-G")
        self.assertIn(b'"groups"', record.stdout)
        self.assertEqual(run("--require", "groups", "--", "true").returncode, 125)


if __name__ == "__main__":
    main()
