"""--allow with the programs that people use, against servers of the test's own with real TLS."""

import hashlib
import json
import os
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import web
from harness import IS_ROOT, Case, both_callers, main, shared_folder

POSTGRES = Path("/usr/lib/postgresql/15/bin")
DATABASE = "203.0.113.30"
API, API_V6 = "203.0.113.11", "2001:db8::11"
TRUST = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT", "NPM_CONFIG_CAFILE"]


def setUpModule() -> None:
    if not IS_ROOT:
        print("NOT COVERED: egress to servers of the test's own: only root can make a network", flush=True)
        raise unittest.SkipTest("only root can make a network")
    folder = Path(tempfile.mkdtemp(dir=shared_folder()))
    folder.chmod(0o755)
    web.enter(folder, {"db.example.org": DATABASE, "api.example.org": API, "six.example.org": API_V6})
    context = web.make_certificates(folder)
    root = folder / "root"
    root.mkdir()
    web.fill(root)
    web.serve(root, 80, None)
    web.serve(root, 443, context)
    Egress.folder_of_all = folder
    Egress.processes = [web.start_api(folder, address, 80, tls=False) for address in (API, API_V6)]


def tearDownModule() -> None:
    web.stop(Egress.processes)


@both_callers
class Egress(Case):
    folder_of_all: Path
    processes: list[subprocess.Popen] = []

    def fetch(self, *command: str, allow: tuple[str, ...] = ("www.example.org", "index.example.org"), flags: tuple[str, ...] = (), script: str = ""):
        options = [option for name in allow for option in ("--allow", name)]
        trust = [option for name in TRUST for option in ("-e", f"{name}=/ca.pem")]
        program = [self.write("script.py", script)] if script else ["--", *command]
        return self.record(*options, *trust, "--mount", f"{self.folder_of_all}/ca.pem:/ca.pem", "--timeout", "60", "--memory", "1G", "--accept-weaker", "memory", *flags, *program)

    def check(self, record, text: str) -> None:
        self.assertEqual((record["status"], record["reason"]), ("ok", ""), record["stderr"] + str(record["denials"]))
        self.assertIn(text, record["stdout"] + record["stderr"])
        self.assertGreater(record["usage"]["net_received_bytes"], 0)
        self.assertTrue(all(use["rule"].startswith("rule ") for use in record["network"]))

    def test_curl(self):
        self.need("curl")
        for url in "http://www.example.org/page", "https://www.example.org/page":
            for how in [], ["--noproxy", "*"], ["-x", "socks5h://127.0.0.1:888"], ["-x", "socks5://127.0.0.1:888"], ["-x", "socks4a://127.0.0.1:888"], ["--noproxy", "*", "-6"], ["--noproxy", "*", "-4"]:
                with self.subTest(url=url, how=how):
                    self.check(self.fetch("curl", "-sS", *how, url), "a page")
        refused = self.fetch("curl", "-sS", "https://other.example.org/page")
        self.assertIn("403", refused["stderr"])
        self.assertEqual([{key: denial[key] for key in ("kind", "target", "rule", "hint")} for denial in refused["denials"]],
                         [{"kind": "network", "target": "other.example.org:443", "rule": "default deny", "hint": "--allow other.example.org:443"}])

    def test_wget(self):
        self.need("wget")
        for url in "http://www.example.org/page", "https://www.example.org/page":
            for how in [], ["--no-proxy"]:
                self.check(self.fetch("wget", "-qO-", "--ca-certificate=/ca.pem", *how, url), "a page")

    def test_git(self):
        self.need("git")
        for flags in (), ("-e", "https_proxy="):
            self.check(self.fetch("sh", "-c", "git clone -q https://www.example.org/repository.git r && cat r/file", flags=flags), "from git")

    def test_pip(self):
        for flags in (), ("-e", "https_proxy="):
            self.check(self.fetch("sh", "-c", "/usr/bin/python3 -m pip install -q --target /tmp/t --index-url https://index.example.org/simple hello && PYTHONPATH=/tmp/t /usr/bin/python3 -m hello", flags=flags), "hello from the index")

    def test_npm(self):
        self.need("npm")
        record = self.fetch("sh", "-c", "npm --registry=https://index.example.org/ --no-audit --no-fund --no-update-notifier install hello >&2 && node -e 'require(\"hello\")'")
        self.check(record, "hello from npm")

    def test_python(self):
        script = """
import asyncio, os, ssl, urllib.request
print(urllib.request.urlopen("https://www.example.org/page").read().decode())
print(urllib.request.urlopen("http://www.example.org/page").read().decode())
import requests
with requests.Session() as session:
    for _ in range(3): print(session.get("https://www.example.org/page").text, session.get("http://www.example.org/page").text)
import aiohttp
async def fetch():
    async with aiohttp.ClientSession() as session:
        async with session.get("https://www.example.org/page", ssl=ssl.create_default_context(cafile="/ca.pem")) as answer:
            print("aiohttp", await answer.text())
asyncio.run(fetch())
"""
        for flags in (), ("-e", "https_proxy=", "-e", "http_proxy="):
            self.check(self.fetch(script=script, flags=flags), "aiohttp a page")

    def test_node(self):
        self.need("node")
        self.check(self.fetch("node", "-e", "fetch('https://www.example.org/page').then(r => r.text()).then(console.log)"), "a page")
        failed = self.fetch("node", "-e", "fetch('https://other.example.org/page').catch(e => console.log(e.cause.code))")
        self.assertEqual(failed["stdout"], "ENOTFOUND\n")

    def test_openssl(self):
        self.check(self.fetch("sh", "-c", "printf 'GET /page HTTP/1.0\\r\\nHost: www.example.org\\r\\n\\r\\n' | openssl s_client -quiet -connect www.example.org:443 -servername www.example.org; true"), "a page")
        wrong = self.fetch("sh", "-c", "openssl s_client -connect www.example.org:443 -servername other.example.org < /dev/null; true")
        self.assertIn("alert access denied", wrong["stderr"])
        self.assertIn("its TLS greeting names another server", [denial["rule"] for denial in wrong["denials"]])

    def test_psql(self):
        if not (POSTGRES / "initdb").exists():
            self.not_covered("psql", f"{POSTGRES}/initdb is not installed")
        folder = Path(tempfile.mkdtemp(dir=shared_folder()))
        subprocess.run(["chown", "postgres", folder], check=True)
        as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        subprocess.run([*as_postgres, POSTGRES / "initdb", "-D", folder / "data", "-A", "trust", "-N"], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with (folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all all trust\n")
        server = subprocess.Popen([*as_postgres, POSTGRES / "postgres", "-D", folder / "data", "-h", DATABASE, "-k", folder], cwd=folder,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (server.terminate(), server.wait(30)))
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with socket.socket() as client:
                if client.connect_ex((DATABASE, 5432)) == 0:
                    break
            time.sleep(0.1)
        command = [str(POSTGRES / "psql"), "-h", "db.example.org", "-U", "postgres", "-Atc", "select 'answer ' || sum(n) from generate_series(1, 100000) n"]
        self.check(self.fetch(*command, allow=("db.example.org:5432",)), "answer 5000050000")
        refused = self.fetch(*command)
        self.assertNotEqual(refused["status"], "ok")

    def test_methods_and_paths(self):
        policy = self.write("p.toml", 'allow = [{host = "www.example.org", methods = ["GET"], paths = ["/page", "/simple/*"]}]\n')
        def status(*arguments: str) -> str:
            return self.fetch("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", *arguments, allow=(), flags=("--policy", str(policy)))["stdout"]
        for how in [], ["--noproxy", "*"]:
            self.assertEqual(status(*how, "http://www.example.org/page?x=1"), "200")
            self.assertEqual(status(*how, "http://www.example.org/simple/hello/"), "200")
            self.assertEqual(status(*how, "http://www.example.org/hello"), "403")
            self.assertEqual(status(*how, "--path-as-is", "http://www.example.org/simple/../hello"), "403")
            self.assertEqual(status(*how, "-d", "x", "http://www.example.org/page"), "403")
            # The program trusts /ca.pem alone, and TLS ends at the relay.
            self.assertEqual(status(*how, "https://www.example.org/page"), "000")

    def test_addresses_of_ipv6(self):
        for how in [], ["--noproxy", "*"], ["-x", "socks5h://127.0.0.1:888"]:
            with self.subTest(how=how):
                self.check(self.fetch("curl", "-sSg", *how, f"http://[{API_V6}]/echo", allow=(f"[{API_V6}]",)), f'"host":"[{API_V6}]"')
                self.check(self.fetch("curl", "-sS", *how, "http://six.example.org/echo", allow=("six.example.org",)), '"host":"six.example.org"')
        refused = self.fetch("curl", "-sSg", "--noproxy", "*", f"http://[{API_V6}]/echo")
        self.assertNotIn("host", refused["stdout"])

    def test_websocket(self):
        script = """
import socket
with socket.create_connection(("api.example.org", 80)) as client:
    client.sendall(b"GET /socket HTTP/1.1\\r\\nHost: api.example.org\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n")
    answer = b""
    while b"\\r\\n\\r\\n" not in answer: answer += client.recv(1000)
    for text in b"\\x81\\x03one", b"two":
        client.sendall(text)
        print(client.recv(1000))
"""
        self.check(self.fetch(script=script, allow=("api.example.org",)), "one'\nb'two'")

    def test_dns_by_tcp(self):
        script = """
import socket
def ask(name):
    question = b"\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\\0\\0\\1\\0\\1"
    with socket.create_connection(("127.0.0.1", 53), 5) as client:
        for byte in len(question).to_bytes(2, "big") + question: client.sendall(bytes([byte]))
        size = int.from_bytes(client.recv(2, socket.MSG_WAITALL), "big")
        answer = client.recv(size, socket.MSG_WAITALL)
        return answer[3] & 15, answer[7], answer[-4:-2].hex()
print(ask("www.example.org"), ask("other.example.org"))
"""
        record = self.fetch(script=script)
        self.assertTrue(record["stdout"].startswith("(0, 1, 'c612') (3, 0,"), record["stdout"] + record["stderr"])

    def test_what_is_not_reached_is_explained(self):
        record = self.fetch("curl", "-sS", "--noproxy", "*", "http://nowhere.example.org/", "http://db.example.org/", allow=("nowhere.example.org", "db.example.org"))
        self.assertEqual({(denial["target"], denial["rule"]) for denial in record["denials"]},
                         {("nowhere.example.org:80", "its name does not resolve"), ("db.example.org:80", "it can't be connected to")})

    def test_a_lot_of_bytes(self):
        content = os.urandom(1 << 20) * 64
        (self.folder_of_all / "root" / "large").write_bytes(content)
        for how in [], ["--noproxy", "*"]:
            record = self.fetch("sh", "-c", " ".join(["curl -sS", *(f"'{word}'" for word in how), "https://www.example.org/large | sha256sum"]))
            self.assertEqual(record["stdout"].split()[0], hashlib.sha256(content).hexdigest())
            self.assertGreater(record["usage"]["net_received_bytes"], 64 << 20)

    def test_what_the_proxy_does_not_do_is_denied(self):
        script = "\n".join(["import socket", "def say(*parts):", "    with socket.create_connection(('127.0.0.1', 888), 5) as proxy:", "        for part in parts: proxy.sendall(part); proxy.recv(999)",
                            "address = bytes([0, 1, 203, 0, 113, 7, 0, 80])", "say(b'\\5\\1\\0', b'\\5\\2' + address)", "say(b'\\5\\1\\0', b'\\5\\3' + address)", "say(b'\\5\\1\\2')",
                            "say(b'CONNECT www.example.org HTTP/1.1\\r\\n\\r\\n')", "say(b'GET https://www.example.org/ HTTP/1.1\\r\\n\\r\\n')"])
        record = self.fetch(script=script)
        self.assertEqual(record["status"], "ok", record["stderr"])
        denials = {denial["target"]: (denial["rule"], denial["count"]) for denial in record["denials"]}
        self.assertEqual(denials["the proxy"], ("of SOCKS there is CONNECT alone, without a password", 3))
        self.assertIn("a port from 1 to 65535", denials["www.example.org"][0])
        self.assertIn("not an http URL", denials["https://www.example.org/"][0])

    def test_the_process_is_killed(self):
        """Without its way out a sandbox does not go on."""
        run = self.start("run", "--json", "--allow", "www.example.org", "--", "sleep", "30")
        until = time.monotonic() + 20
        pids: list[str] = []
        while not pids and time.monotonic() < until:
            pids = subprocess.run(["pgrep", "-f", "^belljar-egress$", "-P", str(run.pid)], capture_output=True, text=True).stdout.split()
        subprocess.run(["kill", "-9", *pids], check=True)
        out, _ = run.communicate(timeout=20)
        self.assertIn(b'"status":"internal"', out)
        self.assertIn(b"the egress process came to a bad end (signal 9)", out)

    def test_the_process_is_stopped(self):
        """It goes on to say what it decided, and the end is not put off."""
        run = self.start("run", "--json", "--allow", "www.example.org", "--", "sh", "-c", "curl -s http://other.example.org; echo ready; sleep 2")
        until = time.monotonic() + 20
        pids: list[str] = []
        while not pids and time.monotonic() < until:
            pids = subprocess.run(["pgrep", "-f", "^belljar-egress$", "-P", str(run.pid)], capture_output=True, text=True).stdout.split()
        time.sleep(1)
        subprocess.run(["kill", "-STOP", *pids], check=True)
        start = time.monotonic()
        out, _ = run.communicate(timeout=20)
        self.assertLess(time.monotonic() - start, 6)
        record = json.loads(out)
        self.assertEqual((record["status"], record["denials"][0]["target"]), ("ok", "other.example.org:80"))


if __name__ == "__main__":
    main()
