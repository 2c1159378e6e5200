"""The modules that many programs begin with, each with one fact."""
import base64
import collections
import concurrent.futures
import csv
import ctypes
import datetime
import decimal
import email.message
import hashlib
import http.client
import io
import json
import locale
import logging
import os
import pickle
import platform
import queue
import random
import re
import resource
import secrets
import socket
import sqlite3
import ssl
import struct
import sys
import time
import unittest
import urllib.parse
import uuid
import xml.etree.ElementTree
import zlib


def fact(name, value):
    print(f"{name}: {value}")


fact("base64", base64.b64encode(b"bytes"))
fact("collections", collections.Counter("mississippi").most_common(2))
with concurrent.futures.ProcessPoolExecutor(2) as pool:
    fact("processes", list(pool.map(pow, range(5), [2] * 5)))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    fact("threads", sorted(pool.map(len, ["a", "bb", "ccc"])))
out = io.StringIO()
csv.writer(out).writerow(["a,b", 'c"d'])
fact("csv", out.getvalue().strip())
fact("ctypes", ctypes.CDLL(None).abs(-5))
fact("datetime", datetime.datetime(2001, 2, 3, tzinfo=datetime.timezone.utc).isoformat())
fact("decimal", decimal.Decimal(1) / decimal.Decimal(7))
message = email.message.EmailMessage()
message["Subject"] = "x"
fact("email", message.as_string().strip())
fact("hashlib", hashlib.sha256(b"").hexdigest()[:12])
fact("http", http.client.responses[404])
fact("json", json.dumps({"b": [1, 2.5, None], "a": "\u00e4"}, sort_keys=True))
fact("locale", locale.getpreferredencoding())
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
logging.warning("logged")
sys.stdout.flush()
fact("pickle", pickle.loads(pickle.dumps({1: (2, 3)})))
fact("platform", platform.system())
things = queue.Queue()
things.put(1)
fact("queue", things.get())
fact("random", random.Random(5).random())
fact("re", re.findall(r"(\w)(\d+)", "a1 b22"))
fact("resource", resource.getrusage(resource.RUSAGE_SELF).ru_utime > 0)
fact("secrets", len(secrets.token_bytes(16)))
fact("socket", socket.AF_UNIX.name)
fact("sqlite3", sqlite3.connect(":memory:").execute("select 6 * 7").fetchone())
fact("ssl", ssl.HAS_TLSv1_3)
fact("struct", struct.pack("<IHb", 1, 2, -3))
fact("time", time.strftime("%Y-%m-%d", time.gmtime(0)))
fact("urandom", os.urandom(8) != os.urandom(8))
fact("urllib", urllib.parse.urlsplit("http://user@host:81/path?q#f").port)
fact("uuid", uuid.uuid4().version)
fact("xml", xml.etree.ElementTree.fromstring("<a><b c='d'/></a>")[0].attrib)
fact("zlib", zlib.crc32(b"check"))


class Case(unittest.TestCase):
    def test_true(self):
        self.assertTrue(True)


result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
fact("unittest", (result.testsRun, result.wasSuccessful()))
fact("recursion", sys.getrecursionlimit())
fact("cpus", len(os.sched_getaffinity(0)) >= 1)
