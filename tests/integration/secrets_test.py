"""--secret, and rules with methods and paths over TLS, with the programs that people use."""

import hashlib
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import web
from harness import COMMAND, IS_ROOT, Case, both_callers, main, shared_folder

API = "203.0.113.11"
VALUE = "sk-test-0123456789-abcdefghijkl"
SECRET = "API_KEY=file:{key}@api.example.org:Authorization: Bearer {{}}"

# Has the server push pieces into an answer, and checks after each what has come: no less before the next, and no more.
STREAM = """
const [version, pieces] = [process.argv[1], JSON.parse(process.argv[2])];
const site = 'https://api.example.org';
let come = '', is_ended = false, noticed = () => {};
function read(answer) {
  answer.setEncoding('utf8');
  answer.on('data', (text) => { come += text; noticed(); });
  answer.on('end', () => { is_ended = true; noticed(); });
}
function open() {
  if (version === '1.1') return new Promise((resolve) => require('https').get(site + '/stream', (answer) => resolve(read(answer))));
  const answer = require('http2').connect(site).request({':path': '/stream'});
  read(answer);
  return new Promise((resolve) => answer.on('response', resolve));
}
async function check([piece, wanted]) {
  come = '';
  await fetch(site + '/push', {method: 'POST', body: piece}).then((answer) => answer.text());
  const late = setTimeout(() => { console.log(`after ${piece} came ${come} only`); process.exit(1); }, 10000);
  while (come.length < wanted.length) await new Promise((resolve) => noticed = resolve);
  clearTimeout(late);
  if (come.length === 0) await new Promise((resolve) => setTimeout(resolve, 300));
  if (come !== wanted) { console.log(`after ${piece} came ${come}`); process.exit(1); }
}
(async () => {
  await open();
  for (const each of pieces) await check(each);
  while (!is_ended) await new Promise((resolve) => noticed = resolve);
  console.log('all pieces');
  process.exit(0);
})();
"""


def setUpModule() -> None:
    if not IS_ROOT:
        print("NOT COVERED: secrets for servers of the test's own: only root can make a network", flush=True)
        raise unittest.SkipTest("only root can make a network")
    folder = Path(tempfile.mkdtemp(dir=shared_folder()))
    folder.chmod(0o755)
    web.enter(folder, {"api.example.org": API, "odd.example.org": API})
    web.NAMES.append("api.example.org")  # the certificate has it, and not the other
    context = web.make_certificates(folder)
    root = folder / "root"
    root.mkdir()
    web.fill(root)
    web.serve(root, 443, context)
    Secrets.servers = folder
    Secrets.processes = [web.start_api(folder, API, 443, tls=True), web.start_api(folder, API, 80, tls=False),
                         web.start_api(folder, API, 8080, tls=False)]


def tearDownModule() -> None:
    web.stop(Secrets.processes)


@both_callers
class Secrets(Case):
    servers: Path
    processes: list[subprocess.Popen] = []

    def setUp(self):
        super().setUp()
        self.key = self.write("key.txt", VALUE + "\n", 0o600)
        self.log = self.servers / "api.log"
        self.log.write_text("")

    def fetch(self, *command: str, flags: tuple[str, ...] = (), script: str = "", secret: str = SECRET, allow: str = "api.example.org"):
        program = [self.write("script.py", script)] if script else ["--", *command]
        secrets = ["--secret", secret.format(key=self.key)] if secret else []
        return self.record("--allow", allow, "--allow", "www.example.org", *secrets, "--timeout", "60", "--memory", "1G", "--accept-weaker", "memory",
                           *flags, *program, env={"SSL_CERT_FILE": str(self.servers / "ca.pem")})

    def requests(self) -> list[dict]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        self.log.write_text("")
        return lines

    def check(self, record, text: str = "", version: str = "1.1", authorization: str = f"Bearer {VALUE}") -> None:
        self.assertEqual((record["status"], record["reason"]), ("ok", ""), record["stderr"] + str(record["denials"]))
        self.assertIn(text, record["stdout"])
        requests = self.requests()
        self.assertTrue(requests, record["stderr"])
        for request in requests:
            self.assertEqual((request["version"], request["headers"].get("authorization")), (version, authorization))
        self.assertNotIn(VALUE, json.dumps(record))

    def test_the_placeholder(self):
        record = self.fetch("sh", "-c", "echo $API_KEY; env; cat /proc/1/environ; ls -l /proc/self/fd")
        placeholder = record["stdout"].split("\n")[0]
        self.assertEqual(len(placeholder), len(VALUE))
        self.assertTrue(placeholder.startswith("belljar-placeholder-"))
        self.assertNotIn(VALUE, json.dumps(record))

    def test_curl(self):
        self.need("curl")
        echo = '"authorization":"Bearer belljar-placeholder-bel'
        for how in [], ["--noproxy", "*"], ["-x", "socks5h://127.0.0.1:888"]:
            for version, name in ("--http1.1", "1.1"), ("--http2", "2.0"):
                for path in "echo", "chunks", "error":
                    with self.subTest(how=how, version=version, path=path):
                        header = "-H 'X-Own: 1' -H \"Authorization: Bearer $API_KEY\""
                        words = " ".join(f"'{word}'" for word in how)
                        self.check(self.fetch("sh", "-c", f"curl -sSi {words} {version} {header} https://api.example.org/{path}"), echo, name)

    def test_the_header_is_the_relays(self):
        """Whatever the program has there: its own key would let it send data to an account of its own."""
        for version, name in ("--http1.1", "1.1"), ("--http2", "2.0"):
            for own in [], ["-H", "Authorization: Bearer own"], ["-H", "authorization: a", "-H", "AUTHORIZATION: b"]:
                with self.subTest(own=own, version=version):
                    record = self.fetch("curl", "-sS", version, *own, "https://api.example.org/echo")
                    self.check(record, "belljar-placeholder", name)
            record = self.fetch("curl", "-sS", version, "-H", "X_Key: own", "-H", "x_key: own", "https://api.example.org/echo", secret="API_KEY=file:{key}@api.example.org:X-Key: {{}}")
            self.assertEqual(record["status"], "ok", record["stderr"])
            sent = [{key: value for key, value in request["headers"].items() if "key" in key} for request in self.requests()]
            self.assertEqual(sent, [{"x-key": VALUE}])

    def test_a_trailer_is_no_header_of_the_secret(self):
        script = """
import socket, ssl
with ssl.create_default_context().wrap_socket(socket.create_connection(("api.example.org", 443)), server_hostname="api.example.org") as client:
    client.sendall(b"POST /sum HTTP/1.1\\r\\nHost: api.example.org\\r\\nConnection: close\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n1\\r\\nx\\r\\n0\\r\\nAuthorization: own\\r\\nX-Kept: yes\\r\\n\\r\\n")
    print(client.recv(1000).split(b" ")[1])
"""
        record = self.fetch(script=script)
        self.assertEqual(record["stdout"], "b'200'\n", record["stderr"])
        [request] = self.requests()
        self.assertEqual((request["headers"]["authorization"], request["trailers"]), (f"Bearer {VALUE}", {"x-kept": "yes"}))

    def test_large_bodies(self):
        content = os.urandom(1 << 20) * 20
        self.write("content", content)
        for version, name in ("--http1.1", "1.1"), ("--http2", "2.0"):
            with self.subTest(version=version):
                record = self.fetch("curl", "-sS", version, "--data-binary", "@/content", "https://api.example.org/sum", flags=("--mount", f"{self.folder}/content:/content"))
                self.check(record, hashlib.sha256(content).hexdigest(), name)
                record = self.fetch("sh", "-c", f"curl -sS {version} 'https://api.example.org/large?size=50000000' | sha256sum")
                self.check(record, hashlib.sha256(b"x" * 50000000).hexdigest(), name)
                record = self.fetch("sh", "-c", f"curl -sS {version} --parallel 'https://api.example.org/large?size=1000000&n=[1-20]' | wc -c")
                self.check(record, "20000000", name)

    def test_streams_are_not_delayed(self):
        """Each piece that the server writes is there before it writes the next, but for what may be the value's beginning."""
        self.need("node")
        placeholder = "belljar-placeholder-belljar-placeholder"[:len(VALUE)]
        pieces = [("data: one\n\n", "data: one\n\n"), ("k", "k"), ("data: " + VALUE[:9], "data: "), ("no\n\n", VALUE[:9] + "no\n\n"), (VALUE[:1], ""),
                  (VALUE[1:12], ""), (VALUE[12:], placeholder), ("data: " + VALUE + "\n\n", f"data: {placeholder}\n\n"), ("\0" + VALUE[:20], "\0"), ("", VALUE[:20])]
        for version in "1.1", "2.0":
            with self.subTest(version=version):
                record = self.fetch("node", "-e", STREAM, version, json.dumps(pieces))
                self.assertEqual((record["status"], record["stdout"]), ("ok", "all pieces\n"), record["stderr"] + str(record["denials"]))
                self.assertIn(("/stream", version), [(request["path"], request["version"]) for request in self.requests()])

    def test_wget(self):
        self.need("wget")
        for how in [], ["--no-proxy"]:
            self.check(self.fetch("wget", "-qO-", *how, "https://api.example.org/echo"), "belljar-placeholder")

    def test_python(self):
        script = """
import asyncio, os, urllib.request
headers = {"Authorization": "Bearer " + os.environ["API_KEY"]}
print(urllib.request.urlopen(urllib.request.Request("https://api.example.org/echo", headers=headers)).read().decode())
import requests
with requests.Session() as session:
    for path in "echo", "chunks", "large?size=100000": print(session.get("https://api.example.org/" + path, headers=headers).text[:500])
    print(session.post("https://api.example.org/sum", data=iter([b"a", b"b"])).text)
import aiohttp
async def fetch():
    async with aiohttp.ClientSession() as session:
        async with session.get("https://api.example.org/echo", headers=headers) as answer:
            print("aiohttp", await answer.text())
asyncio.run(fetch())
"""
        for flags in (), ("-e", "https_proxy=", "-e", "http_proxy="):
            self.check(self.fetch(script=script, flags=flags), hashlib.sha256(b"ab").hexdigest())

    def test_node(self):
        self.need("node")
        self.check(self.fetch("node", "-e", "fetch('https://api.example.org/echo', {headers: {authorization: 'Bearer ' + process.env.API_KEY}}).then(r => r.text()).then(console.log)"), "belljar-placeholder")
        script = "const c = require('http2').connect('https://api.example.org'); const r = c.request({':path': '/echo'}); r.on('data', d => process.stdout.write(d)); r.on('end', () => c.close())"
        self.check(self.fetch("node", "-e", script), "belljar-placeholder", "2.0")

    def test_openssl(self):
        command = "printf 'GET /echo HTTP/1.0\\r\\nHost: api.example.org\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error -CAfile $SSL_CERT_FILE -connect api.example.org:443 -servername api.example.org; true"
        self.check(self.fetch("sh", "-c", command), "belljar-placeholder", "1.0")

    def test_package_tools(self):
        """git, pip and npm against the ordinary server, whose host has a secret too."""
        for command, text in (("git clone -q https://www.example.org/repository.git r && cat r/file", "from git"),
                              ("/usr/bin/python3 -m pip install -q --target /tmp/t --index-url https://www.example.org/simple hello && PYTHONPATH=/tmp/t /usr/bin/python3 -m hello", "hello from the index"),
                              ("npm --registry=https://www.example.org/ --no-audit --no-fund --no-update-notifier view hello version", "1.0.0")):
            with self.subTest(command=command):
                record = self.fetch("sh", "-c", command, secret="TOKEN=file:{key}@www.example.org:Authorization: token {{}}")
                self.assertEqual((record["status"], record["reason"]), ("ok", ""), record["stderr"] + str(record["denials"]))
                self.assertIn(text, record["stdout"])

    def test_websocket(self):
        script = """
import socket, ssl
with ssl.create_default_context().wrap_socket(socket.create_connection(("api.example.org", 443)), server_hostname="api.example.org") as client:
    client.sendall(b"GET /socket HTTP/1.1\\r\\nHost: api.example.org\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nAuthorization: x\\r\\n\\r\\n")
    answer = b""
    while b"\\r\\n\\r\\n" not in answer: answer += client.recv(1000)
    for text in b"one", b"sk-", b"two":
        client.sendall(text)
        print(client.recv(1000))
"""
        self.check(self.fetch(script=script), "b'one'\nb'sk-'\nb'two'")

    def test_other_hosts_are_left_alone(self):
        show = "openssl s_client -connect {0}:443 -servername {0} < /dev/null 2> /dev/null | grep ^issuer"
        self.assertIn("test authority", self.fetch("sh", "-c", show.format("www.example.org"))["stdout"])
        self.assertIn("Belljar sandbox authority", self.fetch("sh", "-c", show.format("api.example.org"))["stdout"])

    def test_sources(self):
        key = self.key.open()
        self.addCleanup(key.close)
        for source, options in (("fd:0", {"stdin": key}), ("env:KEY", {})):
            with self.subTest(source=source):
                record = self.record("--allow", "api.example.org", "--secret", f"API_KEY={source}@api.example.org:Authorization: Bearer {{}}", "--no-stdin",
                                     "--", "curl", "-sS", "https://api.example.org/echo", env={"SSL_CERT_FILE": str(self.servers / "ca.pem"), "KEY": VALUE}, **options)
                self.check(record, "belljar-placeholder", "2.0")

    def test_bad_sources(self):
        short = self.write("short", "abc\n")
        lines = self.write("lines", "abcdefgh\nijklmnop\n")
        for source, words in ((f"file:{self.folder}/none", "No such file"), (f"file:{self.folder}", "not a regular file"), (f"file:{short}", "fewer than 8 bytes"),
                              (f"file:{lines}", "one line of ASCII"), ("fd:77", "descriptor 77 is not open"), ("env:NONE", "what stands after env: is no variable of your environment"), ("abcdefgh", "never the value itself")):
            with self.subTest(source=source):
                ended = self.run_in("--allow", "api.example.org", "--secret", f"API_KEY={source}@api.example.org:X-Key: {{}}", "--", "true")
                self.assert_refused(ended, 125, words)
        ended = self.run_in("--secret", f"API_KEY=file:{self.key}@api.example.org:X-Key: {{}}", "--", "true")
        self.assert_refused(ended, 125, "no rule allows")

    def test_a_file_that_the_program_would_see(self):
        (self.folder / "link").symlink_to(self.folder)
        secret = ["--allow", "api.example.org", "--secret", f"API_KEY=file:{self.key}@api.example.org:X-Key: {{}}"]
        for shown in ("--mount", f"{self.folder}:/w"), ("--mount", f"{self.folder}/link:/w"), ("--mount", f"{self.key}:/key"), ("--workspace", str(self.folder)):
            with self.subTest(shown=shown):
                self.assert_refused(self.run_in(*secret, *shown, "--", "true"), 125, "the program would see the file")
        (self.folder / "other").mkdir()
        self.ok(*secret, "--mount", f"{self.folder}/other:/w", "--", "true")

    def test_servers_are_checked(self):
        """Neither a server of another name nor one that nobody vouches for gets the value."""
        for name, env in ("odd.example.org", None), ("api.example.org", {"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"}):
            with self.subTest(name=name):
                record = self.record("--allow", name, "--secret", f"API_KEY=file:{self.key}@{name}:X-Key: {{}}", "--", "curl", "-sS", f"https://{name}/echo",
                                     env=env or {"SSL_CERT_FILE": str(self.servers / "ca.pem")})
                self.assertIn("belljar: ", record["stdout"])
                self.assertIn("the server can't be trusted", record["denials"][0]["rule"])
                self.assertEqual(self.requests(), [])

    def test_nobody_to_vouch_for_servers(self):
        secret = f"API_KEY=file:{self.key}@api.example.org:X-Key: {{}}"
        ended = self.run_in("--allow", "api.example.org", "--secret", secret, "--", "true", env={"SSL_CERT_FILE": "/nosuch.pem"})
        self.assert_refused(ended, 125, "SSL_CERT_FILE of your environment names \"/nosuch.pem\", which can't be read: No such file")
        if self.as_user:
            return  # who may not mount can't take the certificates away
        bare = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /etc/ssl/certs && exec "$@"', "sh", COMMAND, "run"]
        command = ["--allow", "api.example.org:80,443", "--secret", secret, "--", "true"]
        environment = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}
        ended = subprocess.run([*bare, *command], capture_output=True, text=True, env=environment)
        self.assertEqual((ended.returncode, ended.stdout), (125, ""))
        self.assertRegex(ended.stderr, r"\Abelljar: .*install the package ca-certificates, or set SSL_CERT_FILE\n\Z")
        command[3] = secret.replace("@", "@http://")
        self.assertEqual(subprocess.run([*bare, *command], capture_output=True, text=True, env=environment).returncode, 0)

    def test_plain_http(self):
        refused = self.fetch("sh", "-c", "curl -sS -H \"Authorization: Bearer $API_KEY\" http://api.example.org/echo")
        self.assertIn("goes out by TLS only", refused["stdout"])
        self.assertEqual(self.requests(), [])
        for how in [], ["--noproxy", "*"]:
            record = self.fetch("curl", "-sS", *how, "http://api.example.org/chunks", secret="API_KEY=file:{key}@http://api.example.org:Authorization: Bearer {{}}")
            self.check(record, "belljar-placeholder")

    def test_http2_floods(self):
        """The connection ends, and the record says why; the next one is as good as ever."""
        script = """
import socket, ssl, struct
context = ssl.create_default_context()
context.set_alpn_protocols(["h2"])
def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload
def pour(frames):
    with context.wrap_socket(socket.create_connection(("api.example.org", 443)), server_hostname="api.example.org") as client:
        client.settimeout(20)
        try:
            client.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + frame(4, 0, 0) + frames)
            while client.recv(65536): pass
            return "ended"
        except TimeoutError: return "open"
        except OSError: return "ended"
head = b"\\x82\\x87\\x84\\x41\\x0fapi.example.org"   # GET, https, /, the authority
resets = b"".join(frame(1, 5, n, head) + frame(3, 0, n, struct.pack(">I", 8)) for n in range(1, 6001, 2))
print(pour({"ping": frame(6, 0, 0, b"12345678") * 30000, "reset": resets}["KIND"]))
import urllib.request
print(urllib.request.urlopen("https://api.example.org/echo").status)
"""
        for kind in "ping", "reset":
            with self.subTest(kind=kind):
                record = self.fetch(script=script.replace("KIND", kind))
                self.assertEqual((record["status"], record["stdout"]), ("ok", "ended\n200\n"), record["stderr"] + str(record["denials"]))
                self.assertEqual([(denial["target"], denial["rule"], denial["count"]) for denial in record["denials"]],
                                 [("api.example.org:443", "a flood of HTTP/2 frames (PING, SETTINGS, RST_STREAM, CONTINUATION) from the program", 1)])
                self.assertIn("/echo", [request["path"] for request in self.requests()])

    def test_disguised_http(self):
        """What some servers read as a request and others do not: refused, on any port, with a secret and without."""
        script = """
import socket
for first in b"\\r\\nGET / HTTP/1.1", b"get / HTTP/1.1", b"GET1 / HTTP/1.1", b"GET\\t/ HTTP/1.1", b"hello":
    client = socket.create_connection(("api.example.org", 8080))
    client.settimeout(10)
    client.sendall(first + b"\\r\\nHost: evil.test\\r\\nAuthorization: Bearer of-its-own\\r\\n\\r\\n")
    try: print(client.recv(12))
    except OSError as error: print(type(error).__name__)
"""
        for secret in "", "API_KEY=file:{key}@http://api.example.org:8080:Authorization: Bearer {{}}":
            with self.subTest(secret=secret):
                record = self.fetch(script=script, secret=secret, allow="api.example.org:8080")
                refused = ["ConnectionResetError"] * 4 + (["ConnectionResetError"] if secret else ["b'HTTP/1.1 400'"])
                self.assertEqual(record["stdout"].splitlines(), refused, str(record["denials"]) + record["stderr"])
                self.assertIn("it begins like HTTP, but not as every server reads it", [denial["rule"] for denial in record["denials"]])
                self.assertEqual(self.requests(), [])

    def test_downloads_that_nobody_reads(self):
        script = """
import socket, ssl
context = ssl.create_default_context()
clients = []
for number in range(250):
    try:
        client = context.wrap_socket(socket.create_connection(("api.example.org", 443)), server_hostname="api.example.org")
        client.sendall(b"GET /large?size=8000000 HTTP/1.1\\r\\nHost: api.example.org\\r\\n\\r\\n")
        clients.append(client)
    except OSError: pass
print("tried")
clients.clear()
client = context.wrap_socket(socket.create_connection(("api.example.org", 443)), server_hostname="api.example.org")
client.sendall(b"GET /echo HTTP/1.1\\r\\nHost: api.example.org\\r\\nAuthorization: x\\r\\n\\r\\n")
print(client.recv(12))
"""
        record = self.fetch(script=script, flags=("--net-rate", "1000"))
        self.assertEqual((record["status"], record["stdout"]), ("ok", "tried\nb'HTTP/1.1 200'\n"), record["stderr"] + str(record["denials"]))

    def test_methods_and_paths(self):
        policy = self.write("p.toml", f"""
allow = [{{host = "api.example.org", methods = ["GET", "POST"], paths = ["/echo", "/v1/*"]}}]
[[secrets]]
name = "API_KEY"
source = "file:{self.key}"
host = "api.example.org"
header = "Authorization: Bearer {{}}"
methods = ["GET"]
paths = ["/v1/*"]
""")
        def status(*arguments: str) -> tuple[str, list]:
            record = self.record("--policy", str(policy), "--", "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", *arguments, env={"SSL_CERT_FILE": str(self.servers / "ca.pem")})
            return record["stdout"], [request["headers"].get("authorization") for request in self.requests()]
        for version in "--http1.1", "--http2":
            with self.subTest(version=version):
                self.assertEqual(status(version, "https://api.example.org/v1/x?y=z"), ("200", [f"Bearer {VALUE}"]))
                self.assertEqual(status(version, "https://api.example.org/echo"), ("200", [None]))
                self.assertEqual(status(version, "-d", "x", "https://api.example.org/v1/x"), ("200", [None]))
                self.assertEqual(status(version, "https://api.example.org/v2/x"), ("403", []))
                self.assertEqual(status(version, "-X", "PUT", "https://api.example.org/v1/x"), ("403", []))
                self.assertEqual(status(version, "--path-as-is", "https://api.example.org/v1/../v2"), ("403", []))
        self.check_rules()
        check = lambda url: self.belljar("policy", "check", "--url", url, policy).text
        self.assertIn("with the secret API_KEY in Authorization", check("https://api.example.org/v1/x"))
        self.assertIn("allowed by rule 1 (api.example.org)\n", check("https://api.example.org/echo"))
        self.assertIn("refused: the method or the path", check("https://api.example.org/v2/x"))

    def check_rules(self):
        """The record names the rule that let each request through, also where another one has the same host."""
        rules = self.write("rules.toml", """
allow = [
  {host = "api.example.org", methods = ["GET"], paths = ["/echo"]},
  {host = "api.example.org", methods = ["POST"], paths = ["/echo"]},
  {host = "api.example.org", methods = ["GET"], paths = ["/v1/*"]},
]
""")
        first, second, third = (f"rule {number} (api.example.org)" for number in (1, 2, 3))
        url = "https://api.example.org"
        for version in "--http1.1", "--http2":
            with self.subTest(version=version):
                record = self.record("--policy", str(rules), "--", "curl", "-sS", version, "-d", "x", f"{url}/echo", "--next", version, "-sS", f"{url}/v1/large?size=100000", "-o", "/dev/null",
                                     "--next", version, "-sS", "-d", "x", f"{url}/echo", "--next", version, "-sS", "-d", "x", f"{url}/v1/x", env={"SSL_CERT_FILE": str(self.servers / "ca.pem")})
                rows = {row["rule"]: row for row in record["network"]}
                self.assertEqual({row["target"] for row in record["network"]}, {"api.example.org:443"})
                self.assertEqual({rule: row["count"] for rule, row in rows.items()}, {second: 1, third: 1}, record["stderr"])
                self.assertLess(rows[second]["received_bytes"], 50000)
                self.assertGreater(rows[third]["received_bytes"], 100000)
                self.assertEqual(sum(row["received_bytes"] for row in rows.values()), record["usage"]["net_received_bytes"])
                self.assertEqual([denial["rule"] for denial in record["denials"]], [f"the method or the path is not in {first}, {second} or {third}"])


if __name__ == "__main__":
    main()
