"""PRV-05: groups that were left over (docker, disk, sudo, kvm), and files that only they open."""

import json
import os

from harness import EscapeTest, callers, main, root, user

GROUPS = "4,6,27,108,63990"  # adm, disk, sudo and their like, and the one of the test's files
GROUP = 63990

PROBE = """
report(groups=os.getgroups(), ids=os.getresgid(), read=content("/data/secret"), write=attempt(os.open, "/data/secret", os.O_WRONLY))
"""


class Prv05(EscapeTest):
    def setUp(self) -> None:
        super().setUp()
        if root() is None:
            self.skipTest("only root can hand out groups")

    def folder_of_the_group(self, caller, mode: int):
        """A folder of the host's with a file that its group may read and write."""
        data = self.host_folder(f"data-{caller}-{mode:o}", root())
        (data / "secret").write_text(self.canary)
        os.chown(data / "secret", 0, GROUP)
        (data / "secret").chmod(0o660)
        os.chown(data, 0, GROUP)
        data.chmod(mode)
        return data

    def run_in(self, caller, argv: list[str]):
        """As the caller, with the groups; started by root, which may hand them out."""
        who = ["setpriv", f"--reuid={caller.uid}", f"--regid={caller.uid}", f"--groups={GROUPS}", "--"]
        return root().run([*who, *argv], caller.environment(), cwd=self.folder)

    def test_positive_control(self) -> None:
        data = self.folder_of_the_group(user(), 0o755)
        probe = PROBE.replace("/data/", f"{data}/")
        text = self.run_in(user(), ["/usr/bin/python3", self.script(probe)]).stdout.decode()
        self.assertIn(self.canary, text)
        self.assertIn('"write": "ok"', text)

    def test_root_drops_them(self) -> None:
        data = self.folder_of_the_group(root(), 0o755)
        run = self.run_in(root(), [root().belljar, "run", "--mount", f"{data}:/data:rw", self.script(PROBE)])
        text = run.stdout.decode()
        self.assertIn('"groups": []', text, run)
        self.assertIn('"ids": [1000, 1000, 1000]', text)
        # The file is root's, and root is the caller: by its owner's right it is the program's, and by no group.
        status = os.stat(data / "secret")
        self.assertEqual((status.st_uid, status.st_gid), (0, GROUP))

    def test_root_drops_them_from_files_of_others(self) -> None:
        data = self.folder_of_the_group(root(), 0o755)
        os.chown(data / "secret", 63991, GROUP)
        run = self.run_in(root(), [root().belljar, "run", "--mount", f"{data}:/data:rw", self.script(PROBE)])
        self.assertNotIn(self.canary, run.stdout.decode())
        self.assertIn('"write": "EACCES"', run.stdout.decode())

    def test_a_user_is_told(self) -> None:
        """They can't be dropped without privilege: the result says so, and whoever insists is refused."""
        caller = user()
        run = self.run_in(caller, [caller.belljar, "run", "--json", "--", "true"])
        self.assertIn(b'"groups"', run.stdout)
        isolation = json.loads(run.stdout)["isolation"]
        self.assertIn("groups", [wall["name"] for wall in isolation["weaker"]])
        self.assertNotIn("groups", isolation["enforced"])
        insisting = self.run_in(caller, [caller.belljar, "run", "--require", "groups", "--", "true"])
        self.assertEqual(insisting.returncode, 125)
        without = caller.run([caller.belljar, "run", "--require", "groups", "--", "true"])
        self.assertEqual(without.returncode, 0, without)

    def test_a_user_mounts_nothing_by_them(self) -> None:
        """A folder that is open to the caller by such a group only is refused."""
        caller = user()
        data = self.folder_of_the_group(caller, 0o750)
        listing = self.run_in(caller, ["ls", str(data)])
        self.assertEqual(listing.stdout, b"secret\n")  # the control: the caller can read it
        run = self.run_in(caller, [caller.belljar, "run", "--mount", f"{data}:/data", self.script(PROBE)])
        self.assertEqual(run.returncode, 125)
        self.assertNotIn(self.canary.encode(), run.stdout + run.stderr)

    def test_plain_identity(self) -> None:
        for caller in callers():
            result = self.sandbox(["id"], caller=caller)
            self.assertRegex(result.stdout, r"^uid=1000(\(\w+\))? gid=1000(\(\w+\))?( groups=1000(\(\w+\))?)?\n$")


if __name__ == "__main__":
    main()
