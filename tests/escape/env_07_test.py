"""ENV-07: the value of --secret, looked for inside, or sent where it does not belong: to another host, path or method, by
smuggled headers and requests, by echoes and redirects; and looked for outside, in command lines, memory, cores and errors."""
# ctest: timeout 400

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from allowed import AllowedTest
from harness import REPOSITORY, callers, main, user, work_folder
from internet import PROBE, PUBLIC

SERVER = REPOSITORY / "tests" / "integration" / "api_server.js"
NAMES = ("allowed.example", "other.example")
POLICY = """
allow = ["allowed.example", "other.example"]
[[secrets]]
name = "API_KEY"
source = "file:{key}"
host = "allowed.example"
header = "X-Key: k-{{}}"
methods = ["GET"]
paths = ["/v1/*"]
[[secrets]]
name = "OTHER_KEY"
source = "file:{other}"
host = "other.example"
header = "X-Other: {{}}"
"""
TALK = PROBE + """
KEY = "k-" + os.environ["API_KEY"]
def speak(data, host="allowed.example"):
    "What an allowed host answers to these bytes over TLS."
    context = ssl.create_default_context()
    try:
        with context.wrap_socket(socket.create_connection((host, 443), 5), server_hostname=host) as client:
            client.settimeout(0.5)
            client.sendall(data)
            answer = b""
            while chunk := client.recv(65536): answer += chunk
            return answer.decode("latin-1")
    except OSError as error:
        return answer.decode("latin-1") if isinstance(error, TimeoutError) else str(error)
def request(path="/v1/echo", method="GET", host="allowed.example", more=""):
    return f"{method} {path} HTTP/1.1\\r\\nHost: {host}\\r\\nX-Key: {KEY}\\r\\n{more}\\r\\n".encode()
"""
CURL = ["curl", "-sS", "--max-time", "10"]


class Env07(AllowedTest):
    names = {name: [PUBLIC] for name in NAMES}

    @classmethod
    def serve(cls) -> None:
        cls.servers = work_folder() / "secret-servers"
        cls.servers.mkdir()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=a",
                        "-addext", "subjectAltName=" + ",".join(f"DNS:{name}" for name in NAMES), "-keyout", "key", "-out", "cert"], check=True, cwd=cls.servers, stderr=subprocess.DEVNULL)
        cls.log = cls.servers / "log"
        cls.process = subprocess.Popen(["node", SERVER, PUBLIC, "443", "key", "cert", "log"], cwd=cls.servers, stdout=subprocess.PIPE)
        assert cls.process.stdout.readline() == b"ready\n"

    @classmethod
    def tearDownClass(cls) -> None:
        cls.process.kill()
        cls.process.wait()
        cls.process.stdout.close()

    def setUp(self) -> None:
        super().setUp()
        self.log.write_text("")
        self.other = self.canary[::-1]
        self.policy = self.host_file(POLICY.format(key=self.host_file(self.canary + "\n", "key.txt"), other=self.host_file(self.other, "other.txt")), "p.toml")
        self.env = {"SSL_CERT_FILE": str(self.servers / "cert")}

    def run_inside(self, probe, caller):
        result = self.sandbox(probe, ["--policy", self.policy, "--timeout", "60"], caller, self.env)
        self.assertNotIn(self.canary, json.dumps(result.record))
        self.assertNotIn(self.other, json.dumps(result.record))
        return result

    def arrived(self) -> list[tuple[str, str, str, bool]]:
        """Host, method and path of each request, and whether the value came with it."""
        requests = [json.loads(line) for line in self.log.read_text().splitlines()]
        self.log.write_text("")
        return [(request["headers"].get(":authority") or request["headers"].get("host", ""), request["method"], request["path"], self.canary in json.dumps(request))
                for request in requests]

    def test_nothing_of_it_is_inside(self) -> None:
        probe = """
canary, hits = sys.argv[1][::-1].encode(), []
def look(path):
    try:
        with open(path, "rb") as file:
            if canary in file.read(1 << 22): hits.append(path)
    except OSError: pass
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline", "comm", "status", "maps", "mountinfo", "stat"): look(f"/proc/{pid}/{name}")
for top in "/etc", "/tmp", "/app":
    for folder, _, files in os.walk(top):
        for file in files: look(os.path.join(folder, file))
report(hits=hits, variables=[value for value in os.environ.values() if value.encode() == canary])
"""
        for caller in callers():
            with self.subTest(caller=caller.name):
                inside = self.sandbox(probe, ["--policy", self.policy], caller, self.env, arguments=[self.canary[::-1]])
                self.assertEqual(inside.findings, {"hits": [], "variables": []})
                control = self.sandbox(probe, ["-e", f"API_KEY={self.canary}"], caller, arguments=[self.canary[::-1]]).findings
                self.assertTrue(control["variables"] and any("environ" in path for path in control["hits"]))

    def test_other_places(self) -> None:
        wrong = {
            "other host": ("other.example", "request(host='other.example'), 'other.example'"),
            "other path": ("allowed.example", "request('/v2/echo')"),
            "path with dots": ("allowed.example", "request('/v1/../v2/echo')"),
            "path in percent signs": ("allowed.example", "request('/v1/%2e%2e/v2/echo')"),
            "other method": ("allowed.example", "request(method='PUT', more='Content-Length: 0\\r\\n')"),
            "lower case method": ("allowed.example", "request(method='get')"),
            "later request": ("allowed.example", "request('/v2/a') + request('/v2/b')"),
        }
        for caller in callers():
            with self.subTest(caller=caller.name):
                self.run_inside(TALK + "report(answer=speak(request()))", caller)
                self.assertEqual(self.arrived(), [("allowed.example", "GET", "/v1/echo", True)])
            for what, (host, arguments) in wrong.items():
                with self.subTest(caller=caller.name, what=what):
                    self.run_inside(TALK + f"report(answer=speak({arguments}))", caller)
                    self.assertTrue(all(not value and name == host for name, _, _, value in self.arrived()))

    def test_smuggled(self) -> None:
        inner = "GET /v2/inner HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n"
        for caller in callers():
            for what, more in {"twice": "X-Key: {KEY}\\r\\n", "folded": "X-A: b\\r\\n X-Key: {KEY}\\r\\n", "space": "X-Key : {KEY}\\r\\n",
                               "another host": "Host: other.example\\r\\n", "length and chunks": f"Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n{inner}",
                               "hop by hop": "Connection: X-Key\\r\\n", "bare line feed": "X-A: b\\nHost: other.example\\r\\n", "nul": "X-A: \\0\\r\\n",
                               "other name": "X_Key: {KEY}\\r\\nX-Copy: {KEY}\\r\\n"}.items():
                with self.subTest(caller=caller.name, what=what):
                    self.run_inside(TALK + f"report(answer=speak(request(more=f'{more}')))", caller)
                    for line in self.log.read_text().splitlines():
                        seen = json.loads(line)
                        self.assertEqual((seen["headers"]["host"], seen["path"]), ("allowed.example", "/v1/echo"))
                        holding = [name for name, value in seen["headers"].items() if self.canary in str(value)]
                        self.assertEqual((holding, seen["headers"]["x-key"]), (["x-key"], f"k-{self.canary}"))
                    self.log.write_text("")

    def test_http2(self) -> None:
        for caller in callers():
            for what, words, seen in (("control", ["https://allowed.example/v1/echo"], [("allowed.example", "GET", "/v1/echo", True)]),
                                      ("other authority", ["-H", "Host: other.example", "https://allowed.example/v1/echo"], []),
                                      ("other path", ["https://allowed.example/v2/echo"], [("allowed.example", "GET", "/v2/echo", False)]),
                                      ("other method", ["-X", "POST", "https://allowed.example/v1/echo"], [("allowed.example", "POST", "/v1/echo", False)]),
                                      ("other host", ["https://other.example/v1/echo"], [("other.example", "GET", "/v1/echo", False)])):
                with self.subTest(caller=caller.name, what=what):
                    self.run_inside([*CURL, "--http2", "-H", "X-Key: k-belljar-placeholder", *words], caller)
                    self.assertEqual(self.arrived(), seen)

    def test_echoes(self) -> None:
        for caller in callers():
            for version in "--http1.1", "--http2":
                for path in "echo", "chunks", "error":
                    with self.subTest(caller=caller.name, version=version, path=path):
                        result = self.run_inside([*CURL, "-i", version, f"https://allowed.example/v1/{path}"], caller)
                        self.assertIn("k-belljar-placeholder-", result.stdout)
                        self.assertEqual([value for *_, value in self.arrived()], [True])

    def test_redirects(self) -> None:
        for caller in callers():
            for version in "--http1.1", "--http2":
                with self.subTest(caller=caller.name, version=version):
                    self.run_inside([*CURL, version, "--location-trusted", "-H", "X-Key: k-belljar", "https://allowed.example/v1/redirect?to=https://other.example/v1/echo"], caller)
                    self.assertEqual(self.arrived(), [("allowed.example", "GET", "/v1/redirect", True), ("other.example", "GET", "/v1/echo", False)])

    # --- From outside -------------------------------------------------------------------------------------------------

    def held(self, caller) -> tuple[subprocess.Popen, int]:
        process = self.start(TALK + "print(speak(request())[:12], flush=True)\nsys.stdin.read()", ["--policy", self.policy], caller, self.env,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.home(caller))
        self.assertEqual(process.stdout.readline(), b"HTTP/1.1 200\n")
        pids = subprocess.run(["pgrep", "-P", str(process.pid), "-f", "^belljar-egress$"], capture_output=True, text=True).stdout.split()
        self.assertEqual(len(pids), 1)
        return process, int(pids[0])

    def home(self, caller) -> Path:
        folder = self.folder / f"home-{caller}"
        if not folder.exists():
            self.host_folder(folder.name, caller)
        return folder

    def test_processes_of_the_host(self) -> None:
        """Command lines and environments as root sees them; memory and descriptors as the caller's own user does."""
        for caller in callers():
            with self.subTest(caller=caller.name):
                process, egress = self.held(caller)
                control = subprocess.Popen(["/usr/bin/python3", "-c", "import time; time.sleep(90)", self.canary], env={"KEY": self.canary})
                self.addCleanup(control.wait)
                self.addCleanup(control.kill)
                holding = {int(pid) for pid in filter(str.isdigit, os.listdir("/proc"))
                           for name in ("cmdline", "environ", "comm", "status") if self.canary.encode() in read(Path("/proc", pid, name))}
                self.assertEqual(holding, {control.pid})
                probe = f"report(files=[attempt(os.listdir, '/proc/{egress}/fd'), attempt(open, '/proc/{egress}/mem'), attempt(open, '/proc/{egress}/environ')], ptrace=syscall(101, 16, {egress}, 0, 0))"
                native = self.native(probe, user()).findings
                self.assertEqual((set(native["files"]), native["ptrace"]), ({"EACCES"}, "EPERM"))
                control.kill()
                process.kill()

    def test_no_core(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                process, egress = self.held(caller)
                os.kill(egress, signal.SIGSEGV)
                process.wait(20)
                time.sleep(0.2)
                self.assertEqual([str(path) for path in self.home(caller).rglob("*") if path.is_file() and self.canary.encode() in read(path)], [])

    def test_errors(self) -> None:
        for caller in callers():
            for value in self.canary[:7], f"{self.canary}\n{self.canary}", self.canary + "\0", self.canary + "é", self.canary * 200:
                with self.subTest(caller=caller.name, value=value[:40]):
                    key = self.host_file(value, "bad.txt")
                    run = self.sandbox(["true"], ["--allow", "allowed.example", "--secret", f"API_KEY=file:{key}@allowed.example:X-Key: {{}}"], caller)
                    self.assertEqual((run.exit_status, run.record["error"]["code"]), (125, "bad_value"))
                    self.assertIn("the secret API_KEY: ", run.record["reason"])
                    self.assertNotIn(self.canary[:7], json.dumps(run.record).replace(key, "") + run.stderr)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    main()
