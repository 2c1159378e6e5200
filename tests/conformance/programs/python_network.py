"""Servers on the loopback in Python: asyncio, http, datagrams, addresses."""

import asyncio
import http.client
import http.server
import socket
import threading


async def talk():
    async def serve(reader, writer):
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello\n")
        print(await reader.read())
        writer.close()


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_):
        pass


def ask():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for path in ("/one", "/two"):
            connection = http.client.HTTPConnection(*server.server_address, timeout=10)
            connection.request("GET", path)
            answer = connection.getresponse()
            print(answer.status, answer.read())
            connection.close()
        server.shutdown()


def datagrams():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as by:
        to.bind(("127.0.0.1", 0))
        to.settimeout(10)
        print(by.sendto(b"datagram", to.getsockname()), to.recvfrom(100)[0])
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            print(socket.inet_ntop(family, socket.inet_pton(family, host)))
    for port in ("http", "https"):
        print(port, socket.getservbyname(port))
    for host in ("127.0.0.1", "::1"):
        print([where[:2] for *_, where in socket.getaddrinfo(host, 80, type=socket.SOCK_STREAM)])


if __name__ == "__main__":
    asyncio.run(talk())
    ask()
    datagrams()
