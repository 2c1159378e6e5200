"""What is remembered of runs: --profile, --keep, belljar runs, belljar show."""

import json
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

from harness import Case, both_callers, main

SECRET = "what-the-program-wrote-3141"


class StoreCase(Case):
    def setUp(self):
        super().setUp()
        self.state = self.folder / "state"
        self.state.mkdir()
        self.own(self.state)

    def environment(self, extra: dict | None = None) -> dict:
        return super().environment({"XDG_STATE_HOME": str(self.state), **(extra or {})})

    def remembered(self, *options) -> list[dict]:
        ended = self.belljar("runs", "--json", *options)
        self.assertEqual((ended.status, ended.err), (0, b""), str(ended))
        return [json.loads(line) for line in ended.out.splitlines()]

    def store_bytes(self) -> bytes:
        return b"".join(path.read_bytes() for path in sorted((self.state / "belljar").iterdir()))


@both_callers
class Remembering(StoreCase):
    def test_nothing_is_written_without_a_profile(self):
        self.ok("--", "true")
        self.record("--", "true")
        self.assertEqual(list(self.state.iterdir()), [])

    def test_the_record_is_the_one_that_json_prints(self):
        record = self.record("--profile", "p", "--", "sh", "-c", "echo out; exit 3")
        (run,) = self.remembered()
        for key in ("stdout", "stderr", "files", "files_skipped", "files_truncated"):
            record.pop(key)
        self.assertEqual(run["record"], record)
        self.assertEqual((run["run"], run["profile"]), (1, "p"))
        self.assertLess(abs(run["started_unix_ms"] / 1000 - time.time()), 100)

    def test_output_and_exit_status_stay_the_programs(self):
        ended = self.run_in("--profile", "p", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
        self.assertEqual((ended.status, ended.out, ended.err), (3, b"out\n", b"err\n"))

    def test_texts_are_kept_only_when_asked(self):
        script = self.write("job.sh", f"echo {SECRET}; echo {SECRET} >&2; : {SECRET}\n")
        self.assertEqual(self.run_in("--profile", "p", script).text, SECRET + "\n")
        self.run_in("--profile", "p", "--json", "--", "sh", "-c", f"echo {SECRET}")
        self.run_in("--profile", "p", "-e", f"TOKEN={SECRET}", "--collect", "/out:out", "--", "touch", f"/out/{SECRET}")
        self.assertNotIn(SECRET.encode(), self.store_bytes())
        self.assertEqual(self.run_in("--profile", "p", "--keep", script).text, SECRET + "\n")
        shown = self.belljar("show", "4").text
        self.assertEqual(shown.count(SECRET), 5)  # three times in the program, once in each stream
        run = json.loads(self.belljar("show", "4", "--json").out)
        self.assertEqual((run["program"], run["stdout"], run["stderr"]),
                         (script.read_text(), SECRET + "\n", SECRET + "\n"))

    def test_kept_texts_are_shown_harmlessly(self):
        self.run_in("--profile", "p", "--keep", "--", "printf", r"\033[31mred\n")
        shown = self.belljar("show", "1")
        self.assertNotIn(b"\x1b", shown.out)
        self.assertIn(b"\\x1b[31mred", shown.out)

    def test_refused_runs_are_remembered(self):
        self.assertEqual(self.run_in("--profile", "p", "--", "no-such-program").status, 127)
        (run,) = self.remembered("--status", "denied")
        self.assertEqual(run["record"]["error"]["code"], "not_found")

    def test_what_messages_quote_is_kept_only_when_asked(self):
        script = self.write("job", f"#!/no/such/{SECRET}\n")
        for program in (["--", f"curl -H '{SECRET}' x"], [script], ["--", "/usr/bin/" + SECRET]):
            self.assertEqual(self.run_in("--profile", "p", *program).status, 127)
        self.assertNotIn(SECRET.encode(), self.store_bytes())
        runs = self.remembered("--status", "denied")
        self.assertEqual({run["record"]["error"]["code"] for run in runs}, {"not_found"})
        self.assertEqual({run["record"]["reason"] for run in runs}, {"the program does not exist in the sandbox"})
        self.run_in("--profile", "p", "--keep", "--", SECRET)
        self.assertIn(SECRET, self.belljar("show", "4").text)

    def test_refusals_as_json(self):
        self.run_in("--profile", "p", "--", "true")
        for words, code in ((("runs", "--json", "--status", "foo"), "bad_value"), (("runs", "--json", "x"), "usage"),
                            (("show", "99", "--json"), "no_record"), (("show", "--json"), "usage"),
                            (("calibrate", "--json", "--profile", "q"), "no_record"),
                            (("calibrate", "--json", "--profile", "p"), "too_few_runs"), (("calibrate", "--json"), "usage")):
            with self.subTest(words):
                ended = self.belljar(*words)
                self.assertEqual(ended.status, 125)
                error = json.loads(ended.out)["error"]
                self.assertEqual(error["code"], code)
                self.assertEqual(ended.err.decode(), f"belljar: {error['message']}\n")

    def test_auto_limits_advise_what_run_can_do(self):
        self.run_in("--profile", "p", "--", "true")
        ended = self.run_in("--limits", "auto:p", "--", "true")
        self.assert_refused(ended, 125, "belljar calibrate --profile p --force --write")
        self.assertNotIn(b"--percentile", ended.err)

    def test_filters(self):
        self.run_in("--profile", "a", "--", "true")
        self.run_in("--profile", "b", "--timeout", "200ms", "--", "sleep", "9")
        self.run_in("--profile", "b", "--", "false")
        self.assertEqual([run["run"] for run in self.remembered()], [3, 2, 1])
        self.assertEqual([run["run"] for run in self.remembered("--profile", "b")], [3, 2])
        self.assertEqual([run["run"] for run in self.remembered("--status", "timeout")], [2])
        self.assertEqual([run["run"] for run in self.remembered("--count", "1")], [3])
        table = self.belljar("runs").text.splitlines()
        self.assertEqual(len(table), 4)
        self.assertRegex(table[1], r"^ +3 .* b +error +exit 1 ")
        self.assertRegex(table[2], r"^ +2 .* b +timeout +signal 9 ")

    def test_a_limit_that_struck_is_shown(self):
        self.run_in("--profile", "p", "--timeout", "200ms", "--", "sleep", "9")
        self.assertRegex(self.belljar("show", "1").text, r"(?m)^timeout +2\d\d ms +200 ms .*struck$")

    def test_what_is_not_there(self):
        self.assert_refused(self.belljar("runs"), 125, "no run has been recorded")
        self.assertEqual(self.remembered(), [])
        self.run_in("--profile", "p", "--", "true")
        self.assert_refused(self.belljar("show", "9"), 125, "no run 9")

    def test_runs_at_once(self):
        threads = [threading.Thread(target=self.run_in, args=("--profile", f"p{i % 3}", "--", "true")) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(run["run"] for run in self.remembered()), list(range(1, 13)))

    def test_being_killed_harms_nothing(self):
        for patience in (0.01, 0.05, 0.2, 0.4):
            process = self.start("run", "--profile", "p", "--", "sleep", "0.3")
            time.sleep(patience)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        self.run_in("--profile", "p", "--", "true")
        self.assertIn("ok", [run["record"]["status"] for run in self.remembered()])
        with sqlite3.connect(self.state / "belljar/runs.db") as database:
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])


@both_callers
class NoStore(StoreCase):
    """A run that was to be remembered and can't be is refused before it starts."""

    def refused(self, *words, env: dict | None = None):
        marker = self.folder / "out"
        marker.mkdir(exist_ok=True)
        self.own(marker)
        ended = self.run_in("--profile", "p", "--mount", f"{marker}:/out:rw", "--", "touch", "/out/ran", env=env)
        self.assert_refused(ended, 125, *words)
        self.assertEqual(list(marker.iterdir()), [])

    def test_no_place(self):
        (self.state / "belljar").write_bytes(b"")
        self.own(self.state / "belljar")
        self.refused("record of runs", "not a folder")

    def test_no_home(self):
        self.refused("XDG_STATE_HOME", env={"XDG_STATE_HOME": "", "HOME": ""})

    def test_damaged(self):
        (self.state / "belljar").mkdir(mode=0o700)
        self.own(self.state / "belljar")
        (self.state / "belljar/runs.db").write_bytes(os.urandom(8192))
        self.own(self.state / "belljar/runs.db")
        self.refused("runs.db", "move the file away")

    def test_a_folder_in_its_place(self):
        (self.state / "belljar").mkdir(mode=0o700)
        (self.state / "belljar/runs.db").mkdir()
        for path in (self.state / "belljar", self.state / "belljar/runs.db"):
            self.own(path)
        self.refused(f"{self.state}/belljar/runs.db can't be opened", "Is a directory", "it must be a file of yours")

    def test_anothers_folder(self):
        (self.state / "belljar").mkdir()
        (self.state / "belljar").chmod(0o777)
        self.own(self.state / "belljar")
        self.refused("can be written by others")


@both_callers
class Permissions(StoreCase):
    def test_only_the_owner_can_read_it(self):
        self.run_in("--profile", "p", "--", "true")
        for path in [self.state / "belljar", *Path(self.state, "belljar").iterdir()]:
            self.assertEqual((path.stat().st_mode & 0o77, path.stat().st_uid), (0, self.caller_id), str(path))


if __name__ == "__main__":
    main()
