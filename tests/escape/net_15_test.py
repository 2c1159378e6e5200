"""NET-15: a refused host behind an allowed one: other server names and Host headers, smuggled and later requests."""

from allowed import AllowedTest
from harness import callers, main
from internet import OTHER_PUBLIC, PROBE, PUBLIC, Server, TlsServer

TLS_PROBE = """
def tls(name, server_name, context=None, pieces=0):
    "What came back over TLS, or why nothing did."
    context = context or ssl._create_unverified_context()
    try:
        with socket.create_connection((name, 443), 5) as plain:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = context.wrap_bio(incoming, outgoing, server_hostname=server_name)
            def pump(action):
                while True:
                    try:
                        return action()
                    except ssl.SSLWantReadError:
                        data = outgoing.read()
                        for at in range(0, len(data), pieces or len(data) or 1):
                            plain.sendall(data[at:at + (pieces or len(data))])
                        chunk = plain.recv(65536)
                        if not chunk: return b"closed"
                        incoming.write(chunk)
            if pump(client.do_handshake) == b"closed": return "closed"
            client.write(b"GET / HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\n")
            return pump(lambda: client.read(1000)).decode()
    except ssl.SSLError as error:
        return str(error.reason)
    except OSError as error:
        return name_of(error.errno)
def encrypted_hello(name, outer_name):
    "The kind of record that answers a greeting with an Encrypted Client Hello (extension 0xfe0d) in it: 22 goes on, 21 is an alert."
    outgoing = ssl.MemoryBIO()
    client = ssl._create_unverified_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=outer_name)
    attempt(client.do_handshake)
    hello = bytearray(outgoing.read()[9:])
    number = lambda at, size: int.from_bytes(hello[at:at + size], "big")
    at = 34
    for size in 1, 2, 1: at += size + number(at, size)  # session, cipher suites, compression
    extension = b"\\xfe\\x0d" + (200).to_bytes(2, "big") + os.urandom(200)
    hello[at:at + 2] = (number(at, 2) + len(extension)).to_bytes(2, "big")
    message = b"\\1" + (len(hello) + len(extension)).to_bytes(3, "big") + hello + extension
    with socket.create_connection((name, 443), 5) as plain:
        plain.sendall(b"\\x16\\3\\1" + len(message).to_bytes(2, "big") + message)
        return plain.recv(1)[0]
"""

HEAD = "GET / HTTP/1.1\r\nHost: allowed.example\r\n"
SMUGGLED = "GET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n"
REQUESTS = {
    "other host": "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "other port": "GET / HTTP/1.1\r\nHost: allowed.example:8080\r\n\r\n",
    "no host": "GET / HTTP/1.1\r\nX: y\r\n\r\n",
    "no host in 1.0": "GET / HTTP/1.0\r\n\r\n",
    "two hosts": "GET / HTTP/1.1\r\nHost: allowed.example\r\nHost: evil.example\r\n\r\n",
    "host twice": "GET / HTTP/1.1\r\nHost: evil.example\r\nHost: allowed.example\r\n\r\n",
    "folded host": "GET / HTTP/1.1\r\nHost: allowed.example\r\n evil.example\r\n\r\n",
    "space before the colon": "GET / HTTP/1.1\r\nHost : evil.example\r\nHost: allowed.example\r\n\r\n",
    "absolute and host": "GET http://evil.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "host and absolute": "GET http://allowed.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "length and chunks": HEAD.replace("GET", "POST") + f"Content-Length: {len(SMUGGLED) + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "two lengths": HEAD.replace("GET", "POST") + "Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + SMUGGLED,
    "odd encoding": HEAD.replace("GET", "POST") + "Transfer-Encoding: xchunked\r\n\r\n" + SMUGGLED,
    "encoding with a tab": HEAD.replace("GET", "POST") + "Transfer-Encoding:\tchunked, identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "bare line feeds": "GET / HTTP/1.1\nHost: evil.example\n\n",
    "NUL": "GET / HTTP/1.1\r\nHost: allowed.example\0.evil.example\r\n\r\n",
    "CONNECT to an origin": "CONNECT evil.example:80 HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
}


class Net15(AllowedTest):
    names = {"allowed.example": [PUBLIC], "evil.example": [OTHER_PUBLIC]}

    @classmethod
    def serve(cls) -> None:
        cls.server = Server(80, keeps=True)
        cls.tls = TlsServer(443, ["allowed.example", "evil.example"])

    def test_server_names(self) -> None:
        probe = PROBE + TLS_PROBE + """
old = ssl._create_unverified_context(); old.maximum_version = ssl.TLSVersion.TLSv1_2
report(good=[tls("allowed.example", "allowed.example"), tls("allowed.example", "ALLOWED.example"), tls("allowed.example", "allowed.example", old),
             tls("allowed.example", "allowed.example", pieces=1), tls("allowed.example", "allowed.example", pieces=100)],
       bad=[tls("allowed.example", name) for name in ("evil.example", None, "sub.allowed.example", "allowed.example.evil.example")] + [tls("allowed.example", "evil.example", old)],
       encrypted=[encrypted_hello("allowed.example", name) for name in ("allowed.example", "evil.example")])
"""
        for caller in callers():
            with self.subTest(caller=caller.name):
                self.tls.visits.clear()
                result = self.sandbox(probe, ["--allow", "allowed.example"], caller)
                for answer in result.findings["good"]:
                    self.assertTrue(answer.endswith("welcome"), answer)
                for answer in result.findings["bad"]:
                    self.assertIn("ACCESS_DENIED", answer)
                self.assertEqual(result.findings["encrypted"], [22, 21])
                self.assertEqual({name.lower() for _, name, _ in self.tls.visits}, {"allowed.example"})
                self.assertEqual(sum(denial["count"] for denial in result.record["denials"]), 6)

    def test_positive_control(self) -> None:
        self.tls.visits.clear()
        probe = PROBE + TLS_PROBE + f"report(answer=tls({PUBLIC!r}, 'evil.example'), plain=talk(({PUBLIC!r}, 80), {REQUESTS['other host'].encode()!r}))"
        found = self.native(probe).findings
        self.assertTrue(found["answer"].endswith("welcome") and found["plain"].endswith("welcome"), found)
        self.assertEqual(self.tls.visits[0][:2], (PUBLIC, "evil.example"))

    def test_requests(self) -> None:
        probe = PROBE + f"""
requests = {REQUESTS!r}
head = {HEAD!r}
two = lambda second, to_end=False: talk(("allowed.example", 80), (head + "\\r\\n" + second).encode(), to_end=to_end)
report(good=[two(head + "\\r\\n"), two("POST / HTTP/1.1\\r\\nHost: allowed.example:80\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n3\\r\\nabc\\r\\n0\\r\\n\\r\\n"),
             talk(("allowed.example", 80), b"GET http://allowed.example/ HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\n")],
       bad={{name: talk(("allowed.example", 80), text.encode()) for name, text in requests.items()}},
       tunnelled={{name: connect(b"allowed.example:80", text.encode()) for name, text in requests.items()}},
       later={{name: two(text, True) for name, text in requests.items()}},
       proxied=[absolute(b"http://allowed.example/", b"evil.example"), absolute(b"http://evil.example/", b"allowed.example"),
                talk(PROXY, b"GET http://allowed.example/ HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\nGET http://evil.example/ HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n"),
                talk(PROXY, b"CONNECT allowed.example:80 HTTP/1.1\\r\\nHost: evil.example:80\\r\\n\\r\\n")])
"""
        for caller in callers():
            with self.subTest(caller=caller.name):
                self.server.visits.clear()
                found = self.sandbox(probe, ["--allow", "allowed.example", "--timeout", "90"], caller).findings
                for answer in found["good"]:
                    self.assertTrue(answer.endswith("welcome"), answer)
                for name, answer in found["bad"].items():
                    self.assertRegex(answer, "^HTTP/1.1 400 ", name)
                for name, answer in found["tunnelled"].items():
                    self.assertRegex(answer, "^HTTP/1.1 200 Connection established\r\n\r\n(HTTP/1.1 400 |$)", name)
                for name, answer in found["later"].items():
                    self.assertRegex(answer, "^HTTP/1.1 200 OK", name)
                    self.assertIn("HTTP/1.1 400 ", answer, name)
                self.assertRegex(found["proxied"][0], "^HTTP/1.1 400 ")
                self.assertRegex(found["proxied"][1], "^HTTP/1.1 (400|403) ")
                self.assertTrue(found["proxied"][2].startswith("HTTP/1.1 200 OK"), found["proxied"][2])
                self.assertRegex(found["proxied"][3], "^HTTP/1.1 400 ")
                self.assertNotIn(b"evil", self.server.received)
                self.assertEqual(set(self.server.addresses), {PUBLIC})


if __name__ == "__main__":
    main()
