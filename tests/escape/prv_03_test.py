"""PRV-03: make device nodes, or open such as came with a mounted folder."""

import os
import stat

from harness import EscapeTest, callers, main, not_covered, root

MAKE = """
import stat
kinds = {"char": stat.S_IFCHR, "block": stat.S_IFBLK}
report(made={f"{place} {name}": attempt(os.mknod, f"{place}/node-{name}", kind | 0o666, os.makedev(1, 3))
             for place in sys.argv[1:] for name, kind in kinds.items()},
       fifo=attempt(os.mkfifo, sys.argv[1] + "/fifo"), plain=attempt(os.mknod, sys.argv[1] + "/plain", 0o600 | stat.S_IFREG))
"""

OPEN = """
report(opened={name: {mode: attempt(os.open, os.path.join(sys.argv[1], name), mode) for mode in (os.O_RDONLY, os.O_WRONLY)}
               for name in ("null", "memory", "loop")})
"""


class Prv03(EscapeTest):
    def test_make(self) -> None:
        if caller := root():
            natively = self.native(MAKE, caller, arguments=[str(self.host_folder("native", caller))]).findings["made"]
            self.assertEqual(set(natively.values()), {"ok"})
        for caller in callers():
            work = self.host_folder(f"work-{caller}", caller)
            findings = self.sandbox(MAKE, ["--mount", f"{work}:/work:rw"], caller, arguments=["/tmp", "/dev/shm", "/tmp/home", "/work"]).findings
            self.assertEqual(findings["made"], {name: "EPERM" for name in findings["made"]})
            self.assertEqual((len(findings["made"]), findings["fifo"], findings["plain"]), (8, "ok", "ok"))
            self.assertEqual(os.listdir(work), [])

    def test_open(self) -> None:
        caller = root()
        if caller is None:
            return
        data = self.host_folder("data", caller)
        for name, kind, number in ("null", stat.S_IFCHR, (1, 3)), ("memory", stat.S_IFCHR, (1, 1)), ("loop", stat.S_IFBLK, (7, 0)):
            os.mknod(data / name, kind | 0o666, os.makedev(*number))
            os.chmod(data / name, 0o666)
        natively = self.native(OPEN, caller, arguments=[str(data)]).findings["opened"]
        if natively["null"]["0"] != "ok":
            return not_covered("PRV-03 with nodes in a folder", f"{self.folder} is mounted nodev")
        for caller in callers():
            for access in "ro", "rw":
                opened = self.sandbox(OPEN, ["--mount", f"{data}:/data:{access}"], caller, arguments=["/data"]).findings["opened"]
                self.assertEqual({answer for answers in opened.values() for answer in answers.values()}, {"EACCES"})

    def test_a_node_itself_is_no_mount(self) -> None:
        for caller in callers():
            result = self.sandbox(["true"], ["--mount", "/dev/null:/data/null"], caller)
            self.assertEqual((result.exit_status, result.record["error"]["code"]), (125, "bad_mount"))


if __name__ == "__main__":
    main()
