"""HF-09: write to kernel settings: /proc/sys, sysrq-trigger, core_pattern, uevent_helper, cgroup files of parents."""


from harness import EscapeTest, callers, main, root

# Tries to open for writing everything below /proc/sys and what else changes the host; writes back what stood there.
PROBE = """
paths = ["/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg", "/proc/mtrr", "/proc/acpi/wakeup", "/proc/timer_stats",
         "/sys/kernel/uevent_helper", "/sys/kernel/debug", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state",
         "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/release_agent",
         "/sys/fs/cgroup/memory/cgroup.procs", "/sys/fs/cgroup/pids/tasks", "/sys/fs/cgroup/cgroup.subtree_control"]
for top in ("/proc/sys", "/sys", "/proc/irq", "/proc/fs", "/proc/bus"):
    for folder, _, files in os.walk(top):
        paths += [os.path.join(folder, file) for file in files]

def write_back(path):
    try:
        with open(path, "rb") as file:
            old = file.read(4096)
    except OSError:
        old = None
    file = os.open(path, os.O_WRONLY)
    try:
        if old:  # some files can be opened by anyone, and refuse to be written
            os.write(file, old)
    finally:
        os.close(file)

answers = {path: attempt(write_back, path) for path in paths}
made = {path: attempt(os.mkdir, path) for path in ("/sys/fs/cgroup/x", "/sys/fs/cgroup/memory/x", "/proc/sys/x", "/sys/x")}
report(opened=[path for path, answer in answers.items() if answer == "ok"], made=[p for p, a in made.items() if a == "ok"],
       tried=len(answers), core_pattern=answers.get("/proc/sys/kernel/core_pattern"))
"""

SETTINGS = ["kernel/core_pattern", "kernel/hostname", "kernel/modprobe", "kernel/sysrq", "kernel/randomize_va_space",
            "vm/overcommit_memory", "vm/swappiness", "fs/file-max", "kernel/pid_max", "net/ipv4/ip_forward"]


def settings() -> dict:
    values = {}
    for name in SETTINGS:
        try:
            with open("/proc/sys/" + name) as file:
                values[name] = file.read()
        except OSError as error:
            values[name] = error.errno
    return values


class Hf09(EscapeTest):
    def test_positive_control(self) -> None:
        """Root on the host can do what the probe tries."""
        if caller := root():
            self.assertEqual(self.native("""
report(opened=attempt(os.open, "/proc/sys/kernel/core_pattern", os.O_WRONLY))
""", caller).findings["opened"], "ok")

    def test_nothing_can_be_opened_for_writing(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                before = settings()
                findings = self.sandbox(PROBE, caller=caller).findings
                self.assertEqual((findings["opened"], findings["made"]), ([], []))
                self.assertGreater(findings["tried"], 100)
                self.assertIn(findings["core_pattern"], ("EACCES", "EROFS", "EPERM"))
                self.assertEqual(settings(), before)

    def test_own_settings_work(self) -> None:
        probe = """
open("/proc/self/comm", "w").write("renamed")
open("/proc/self/oom_score_adj", "w").write("900")
report(comm=open("/proc/self/comm").read(), pid_max=int(open("/proc/sys/kernel/pid_max").read()) > 0)
"""
        for caller in callers():
            self.assertEqual(self.sandbox(probe, caller=caller).findings, {"comm": "renamed\n", "pid_max": True})


if __name__ == "__main__":
    main()
