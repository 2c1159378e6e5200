"""Limits from recorded runs: belljar calibrate, belljar run --limits auto:NAME."""

import html.parser
import json
import tomllib
from concurrent.futures import ThreadPoolExecutor

from harness import TOP, both_callers, main
from runs_test import StoreCase

# A real analysis, whose size differs from run to run as real ones do: the spread of a mean, by resampling.
BOOTSTRAP = """
import csv, random, sys
chance = random.Random(int(sys.argv[1]))
masses = [float(row["body_mass_g"]) for row in csv.DictReader(open("/data/penguins.csv"))
          if row["body_mass_g"] not in ("", "NA")]
means = []
for _ in range(int(chance.lognormvariate(4, 0.6))):
    resample = chance.choices(masses, k=len(masses))
    means.append((sum(resample) / len(resample), resample))
means.sort()
with open("/tmp/means", "w") as out:
    out.writelines(f"{mean}\\n" for mean, _ in means)
for mean, _ in means[:: max(1, len(means) // 50)]:
    print(mean)
"""

# What a bad run does, and the limits that may stop it: which comes first depends on the proposals.
BAD = {
    "takes memory without end": ("memory", "kept = []\nwhile True: kept.append(bytearray(1 << 20))"),
    "takes ten times the memory": ("memory", "kept = bytes(200 << 20)\nkept = kept.replace(b'\\0', b'x')"),
    "never ends": ("timeout cpu", "while True: pass"),
    "sleeps": ("timeout", "import time; time.sleep(3600)"),
    "starts processes": ("pids", "import os, time\n"
                                 "for _ in range(200):\n  if os.fork() == 0: time.sleep(60)"),
    "starts threads": ("pids", "import threading, time\n"
                               "for _ in range(200): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"),
    "fills the disk": ("disk memory", "out = open('/tmp/big', 'wb', 0)\nwhile True: out.write(bytes(1 << 16))"),
    "fills two files": ("disk memory", "import os\n"
                                "for name in 'ab':\n  with open('/tmp/' + name, 'wb') as out: out.write(bytes(30 << 20))"),
}


def mebibytes(use: int) -> str:
    return f"kept = b'x' * ({use} << 20)"


class CalibrateCase(StoreCase):
    def calibrate(self, *options) -> dict:
        ended = self.belljar("calibrate", "--profile", "p", "--json", *options)
        self.assertEqual((ended.status, ended.err), (0, b""), str(ended))
        return json.loads(ended.out)

    def limit(self, calibration: dict, name: str) -> dict:
        return next(limit for limit in calibration["limits"] if limit["limit"] == name)

    def repeat(self, count: int, *arguments, workers: int = 2):
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(lambda _: self.run_in(*arguments), range(count)))


@both_callers
class Proposals(CalibrateCase):
    def test_refuses_a_small_sample_unless_forced(self):
        self.repeat(3, "--profile", "p", "--", "true")
        self.assert_refused(self.belljar("calibrate", "--profile", "p"), 125, "3 recorded runs", "299", "--force")
        self.assert_refused(self.run_in("--limits", "auto:p", "--", "true"), 125, "299")
        self.assertIn("3 runs are too few to bound it from above", self.belljar("calibrate", "--profile", "p", "--force").text)
        self.assertEqual(self.calibrate("--force")["runs"], 3)
        self.assertIn("29 runs are enough for the 90th", self.belljar("calibrate", "--profile", "p").err.decode())
        lower = self.belljar("calibrate", "--profile", "p", "--percentile", "80").err.decode()
        self.assertIn("record more, or give --force", lower)
        self.assertNotIn("90th", lower)

    def test_low_percentiles_are_bounded_from_above(self):
        self.repeat(3, "--profile", "p", "--", "true")
        for percentile, name in (("1", "1st"), ("22", "22nd"), ("30", "30th")):
            text = self.belljar("calibrate", "--profile", "p", "--percentile", percentile).text
            self.assertIn(f"times the {name} percentile", text)
            self.assertIn("certainty it is at most", text)
            self.assertNotIn("struck", text)

    def test_unknown_profiles(self):
        self.assert_refused(self.belljar("calibrate", "--profile", "p"), 125, "no run has been recorded")
        self.run_in("--profile", "penguins", "--", "true")
        self.assert_refused(self.belljar("calibrate", "--profile", "pengiuns"), 125, "did you mean penguins?")
        self.assert_refused(self.run_in("--limits", "auto:pengiuns", "--", "true"), 125, "did you mean penguins?")

    def test_auto_limits_hold_and_give_way_to_named_ones(self):
        self.repeat(29, "--profile", "p", "--", "true")
        self.calibrate("--percentile", "90")
        self.repeat(270, "--profile", "p", "--", "true", workers=4)
        record = self.record("--limits", "auto:p", "--", "true")
        self.assertEqual(record["limits"]["timeout_ms"], 1000)
        self.assertEqual(record["limits"]["open_files"], 1024)
        record = self.record("--limits", "auto:p", "--timeout", "17s", "--", "true")
        self.assertEqual(record["limits"]["timeout_ms"], 17000)
        record = self.record("--limits", "auto:p", "--", "sleep", "30")
        self.assertEqual((record["status"], record["reason"]), ("timeout", "killed after the wall clock limit of 1 s"))

    def test_policy_file(self):
        self.repeat(3, "--profile", "p", "--", "true")
        path = self.folder / "limits.toml"
        for _ in range(2):  # it writes over its own
            self.calibrate("--force", "--write", path)
        limits = tomllib.loads(path.read_text())["limits"]
        self.assertEqual(limits["timeout"], "1 s")
        self.assertNotIn("open_files", limits)
        shown = self.belljar("policy", "show", "--policy", path)
        self.assertIn('timeout = "1 s"\n', shown.text)
        theirs = self.write("theirs.toml", "tier = 'container'\n")
        ended = self.belljar("calibrate", "--profile", "p", "--force", "--write", theirs)
        self.assert_refused(ended, 125, "theirs.toml", "did not write it")
        self.assertEqual(theirs.read_text(), "tier = 'container'\n")
        ended = self.belljar("calibrate", "--profile", "p", "--force", "--write", "/no/such/folder/limits.toml")
        self.assert_refused(ended, 125, "can't be written")

    def test_only_runs_since_a_time(self):
        self.run_in("--profile", "p", "--", "true")
        self.assertEqual(self.calibrate("--force", "--since", "1h")["runs"], 1)
        self.run_in("--", "sleep", "0.3")
        self.assert_refused(self.belljar("calibrate", "--profile", "p", "--force", "--since", "100ms"), 125, "in that time")


class Page(html.parser.HTMLParser):
    """Finds tags that are not closed, and whatever a browser would fetch."""

    VOID = {"meta", "link", "img", "br", "rect", "line"}

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.fetched = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.VOID or tag == "rect" and not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)
        self.fetched += [value for name, value in attrs if name in ("src", "href") and not value.startswith("#")]

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Report(CalibrateCase):
    def test_page_is_whole_and_alone(self):
        self.repeat(2, "--profile", "p", "--", "true")
        self.run_in("--profile", "p", "--timeout", "100ms", "--", "sleep", "9")
        path = self.folder / "report.html"
        self.calibrate("--force", "--html", path)
        page = Page()
        page.feed(path.read_text())
        self.assertEqual((page.open, page.fetched), ([], []))
        self.assertGreaterEqual(page.tags.count("svg"), 5)
        self.assertNotIn("script", page.tags)
        self.assertNotIn("url(", path.read_text())
        self.assertIn("1 that the limit struck", path.read_text())


class KilledRuns(CalibrateCase):
    def test_are_no_observations_of_their_limit(self):
        for megabytes in (20, 20, 20):
            self.run_in("--profile", "p", "--memory", "64M", "--", "python3", "-c", mebibytes(megabytes))
        before = self.limit(self.calibrate("--force"), "memory")
        ended = self.run_in("--profile", "p", "--memory", "64M", "--", "python3", "-c", mebibytes(200))
        self.assertEqual(ended.status, 124)
        after = self.limit(self.calibrate("--force"), "memory")
        self.assertEqual((after["censored"], after["ended"], after["percentile"]), (1, 1, None))
        self.assertEqual(after["percentile_at_least"], 64 << 20)
        self.assertGreaterEqual(after["proposal"], 3 * 64 << 20)
        self.assertLess(before["proposal"], 3 * 64 << 20)
        self.assertIn("they would have used more", self.page())

    def page(self) -> str:
        path = self.folder / "report.html"
        self.calibrate("--force", "--html", path)
        return path.read_text()


class RealWorkload(CalibrateCase):
    """300 runs of an analysis are recorded; with the limits of those, good runs pass and bad ones are stopped."""

    RUNS = 300

    def bootstrap(self, options: list, seed: int):
        data = f"{TOP}/examples/penguins/penguins.csv:/data/penguins.csv"
        return self.run_in(*options, "--mount", data, self.folder / "bootstrap.py", str(seed))

    def bootstraps(self, options: list, seeds) -> list:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda seed: self.bootstrap(options, seed), seeds))

    def test_good_runs_pass_and_bad_ones_are_stopped(self):
        self.write("bootstrap.py", BOOTSTRAP)
        recorded = self.bootstraps(["--profile", "p"], range(self.RUNS))
        self.assertEqual([ended.status for ended in recorded], [0] * self.RUNS)
        calibration = self.calibrate()
        self.assertEqual((calibration["runs"], calibration["would_stop"]), (self.RUNS, 0))
        self.assertLess(self.limit(calibration, "memory")["proposal"], 200 << 20)

        replayed = self.bootstraps(["--limits", "auto:p"], range(self.RUNS, 2 * self.RUNS))
        stopped = [ended for ended in replayed if ended.status != 0]
        self.assertLess(len(stopped), self.RUNS / 100, "\n".join(map(str, stopped)))
        for what, (status, code) in BAD.items():
            record = self.record("--limits", "auto:p", "--", "python3", "-c", code)
            self.assertIn(record["status"], status.split(), f"{what}: {record['reason']} {record['stderr']}")


if __name__ == "__main__":
    main()
