"""Python in the wasm tier: the same programs print the same in all three tiers, and what WASI can't carry says so."""


from pathlib import Path

from harness import COMMAND, Case, both_callers, main

HAS_PYTHON = Path(COMMAND).with_name("belljar-python.cwasm").exists()

# Each prints something that depends on what it is about.
PROGRAMS = {
    "arithmetic": "print(2**200 % 97, 7 // -2, -7 % 3, 0.1 + 0.2, round(2.5), 1e308 * 10, divmod(-7, 2))",
    "strings": "s = 'Žluťoučký kůň 🎅'; print(s.upper(), s[::-1], s.encode().hex(), f'{3.14159:>10.2f}|{42:#x}', s.split())",
    "collections": "from collections import Counter, OrderedDict, defaultdict, deque, namedtuple\nP = namedtuple('P', 'x y')\n"
                   "print(Counter('abracadabra').most_common(2), deque([1, 2, 3], 2), P(1, 2), sorted(defaultdict(int, a=1).items()))",
    "json": "import json\nprint(json.dumps({'b': [1, 2.5, None, True], 'a': 'ž'}, sort_keys=True, indent=1), json.loads('[1e3, \"\\\\u017e\"]'))",
    "re": "import re\nprint(re.sub(r'(\\w+)@(\\w+)', r'\\2 at \\1', 'me@home you@work'), re.findall(r'\\d+', 'a1b22c333'))",
    "decimal": "from decimal import Decimal, getcontext\ngetcontext().prec = 50\nprint(Decimal(2).sqrt(), Decimal('0.1') * 3)",
    "fractions": "from fractions import Fraction\nprint(sum(Fraction(1, n) for n in range(1, 20)))",
    "datetime": "from datetime import datetime, timedelta, timezone\nd = datetime(2026, 2, 28, 23, 30, tzinfo=timezone.utc)\n"
                "print(d + timedelta(days=1), d.isoformat(), d.strftime('%A %j'), (d - datetime(2000, 1, 1, tzinfo=timezone.utc)).days)",
    "csv": "import csv, io\nout = io.StringIO(); csv.writer(out).writerows([['a,b', 'c\"d'], [1, None]])\n"
           "print(repr(out.getvalue()), list(csv.reader(io.StringIO(out.getvalue()))))",
    "hashlib": "import hashlib\nprint(*(getattr(hashlib, n)(b'abc').hexdigest() for n in ('md5', 'sha1', 'sha256', 'sha3_256', 'blake2b')))",
    "zlib": "import zlib, gzip\ndata = b'abc' * 1000\nprint(len(zlib.compress(data)), zlib.crc32(data), gzip.decompress(gzip.compress(data)) == data)",
    "random with a seed": "import random\nr = random.Random(7)\nprint(r.random(), r.sample(range(100), 5), r.gauss(0, 1))",
    "math": "import math, cmath, statistics\nprint(math.gamma(5.5), math.comb(50, 25), cmath.sqrt(-2), statistics.stdev([1, 2, 4, 8]))",
    "struct": "import struct, array, base64\nprint(struct.pack('<IdH', 7, 1.5, 9).hex(), array.array('d', [1, 2]).tobytes().hex(), base64.b85encode(b'hello'))",
    "itertools": "import itertools, functools, operator\nprint(list(itertools.permutations('abc', 2)), functools.reduce(operator.mul, range(1, 20)))",
    "classes": "from dataclasses import dataclass, field\nfrom enum import Enum\nclass C(Enum): A = 1\n@dataclass(order=True)\nclass D:\n  x: int\n"
               "  y: list = field(default_factory=list)\nprint(C.A, D(1) < D(2), D(3), D.__mro__[0].__name__)",
    "errors": "def f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError as e: print(e)\ntry: 1 / 0\nexcept ZeroDivisionError as e: print(repr(e))\n"
              "try: {}['x']\nexcept KeyError as e: print(repr(e))",
    "files": "import os, pathlib, tempfile\nwith tempfile.TemporaryDirectory() as d:\n  p = pathlib.Path(d, 'a.txt'); p.write_text('x' * 1000)\n"
             "  print(p.stat().st_size, sorted(os.listdir(d)), p.read_text()[:3])\nprint(os.path.exists(p), os.environ['HOME'])",
    "generators": "def g():\n  x = yield 1\n  while True: x = yield x * 2\ni = g(); print(next(i), i.send(5), i.send(7), sum(n * n for n in range(1000)))",
    "stdin and arguments": "import sys\nprint(sys.argv[1:], sum(int(line) for line in sys.stdin)); print('err', file=sys.stderr); sys.exit(5)",
}


@both_callers
class Python(Case):
    def setUp(self):
        super().setUp()
        if not HAS_PYTHON:
            self.not_covered("Python in the wasm tier", "belljar-python.cwasm is not built (./dev wasm)")

    def wasm(self, code: str, *arguments: str, flags: tuple = (), **options):
        return self.run_in("--isolation", "wasm", *flags, self.write("program.py", code), *arguments, **options)

    def test_twenty_programs_are_the_same_in_all_tiers(self):
        self.assertEqual(len(PROGRAMS), 20)
        for name, code in PROGRAMS.items():
            with self.subTest(name):
                ended = [self.run_in("--isolation", tier, self.write("program.py", code), "one", "two words",
                                     data=b"1\n2\n39\n") for tier in ("container", "kernel", "wasm")]
                container, *others = [(each.status, each.out, each.err) for each in ended]
                for other in others:
                    self.assertEqual(other, container)
                self.assertNotEqual(ended[0].out, b"")

    def test_what_is_missing_says_why(self):
        for name, why in (("socket", "no network"), ("subprocess", "start programs"), ("multiprocessing", "start programs"),
                          ("ctypes", "native code"), ("bz2", "built without"), ("asyncio", "no network"), ("ssl", "no network"),
                          ("selectors", "no network"), ("fcntl", "nothing of the kind"), ("venv", "installs nothing"),
                          ("lib2to3", "built without"), ("distutils", "built without")):
            with self.subTest(name):
                ended = self.wasm(f"import {name}")
                self.assertEqual(ended.status, 1)
                self.assertIn(why, ended.err.decode().splitlines()[-1])
        ended = self.wasm("import threading\nthreading.Thread(target=print).start()")
        self.assertIn("can't start new thread: the wasm tier has no threads", ended.err.decode().splitlines()[-1])
        ended = self.wasm("from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor().submit(print)")
        self.assertIn(b"the wasm tier has no threads", ended.err)

    def test_every_module_of_the_library_is_there_or_says_why(self):
        """Of those that Linux has."""
        code = ("import importlib, sys\n"
                "for name in sorted(sys.stdlib_module_names):\n"
                "  if name in ('antigravity', 'this', 'msilib', 'msvcrt', 'nt') or name.startswith(('_', 'win')): continue\n"
                "  try: importlib.import_module(name)\n"
                "  except ImportError as e: print(name, '|', e)\n")
        for line in self.wasm(code, flags=("-e", "PYTHONWARNINGS=ignore")).text.splitlines():
            name, _, why = line.partition(" | ")
            self.assertIn("; use --isolation container", why, line)

    def test_what_a_build_knows_of_itself(self):
        ended = self.wasm("import sysconfig, zoneinfo, pydoc, dbm\nprint(sysconfig.get_config_var('prefix'))\n"
                          "print(str(sysconfig.get_config_vars()).count('python-work'))\n"
                          "with dbm.open('/tmp/d', 'c') as d: d['a'] = 'b'\nprint(dbm.open('/tmp/d')['a'], dbm.whichdb('/tmp/d'))\n"
                          "print(zoneinfo.ZoneInfo.__name__, pydoc.plain(pydoc.render_doc(len)).splitlines()[0])")
        self.assertEqual(ended.text, "/usr\n0\nb'b' dbm.dumb\nZoneInfo Python Library Documentation: built-in function len in module "
                                     "builtins\n", str(ended))

    def test_traceback(self):
        ended = self.wasm("def deep():\n  raise ValueError('broken')\ndeep()")
        self.assertEqual(ended.status, 1)
        self.assertIn("/app/program.py\", line 3", ended.err.decode())

    def test_runs_differ_where_they_must(self):
        code = "import os, random, uuid; print(hash('a'), hash(b'a'), random.random(), os.urandom(8).hex(), uuid.uuid4())"
        first, second = (self.wasm(code).text.split() for _ in range(2))
        for one, other in zip(first, second):
            self.assertNotEqual(one, other)

    def test_hashes_after_the_snapshot(self):
        """What the interpreter held before its hash seed was renewed is found again: each key of each dict, each element of each
        set, and names that were interned."""
        code = ("import builtins, gc, sys\n"
                "everything = gc.get_objects() + [vars(t) for t in (int, str, dict, type, object, list)]\n"
                "lost = [k for d in everything if isinstance(d, (dict, set, frozenset)) for k in list(d) if k not in d]\n"
                "names = [n for m in list(sys.modules.values()) for n in vars(m)]\n"
                "print(lost, len(names) > 1000, all(sys.intern(''.join(list(n))) is sys.intern(n) for n in names))\n"
                "print(getattr(builtins, 'pri' + 'nt') is print, {'a': 1}['a'], frozenset('ab') == frozenset('ba'))")
        for _ in range(5):
            self.assertEqual(self.wasm(code).text, "[] True True\nTrue 1 True\n")

    def test_variables(self):
        code = "import sys; print(hash('a'), sys.path[0], sys.dont_write_bytecode, sys.warnoptions, sys.stdout.write_through)"
        flags = [word for pair in ("PYTHONHASHSEED=7", "PYTHONPATH=/a:/b", "PYTHONUNBUFFERED=1", "PYTHONWARNINGS=error")
                 for word in ("-e", pair)]
        first, second = (self.wasm(code.replace("[0]", "[:3]"), flags=tuple(flags)).text for _ in range(2))
        self.assertEqual(first, second)
        self.assertIn("['/app', '/a', '/b']", first)
        self.assertIn("['error'] True", first)
        ended = self.wasm(code, flags=("-e", "PYTHONHASHSEED=x"))
        self.assertEqual(ended.status, 1)
        self.assertIn(b"PYTHONHASHSEED must be", ended.err)

    def test_sqlite(self):
        code = ("import sqlite3\n"
                "with sqlite3.connect('/tmp/test.db') as db:\n"
                "  db.execute('create table t (n integer, s text)'); db.executemany('insert into t values (?, ?)', enumerate('abc'))\n"
                "db = sqlite3.connect('/tmp/test.db')\n"
                "print(db.execute('select sum(n), group_concat(s), json_array(1, 2) from t').fetchone())\n"
                "db = sqlite3.connect(':memory:'); db.execute('create virtual table f using fts5(x)')\n"
                "db.execute('insert into f values (?)', ('quick brown fox',))\n"
                "print(db.execute(\"select x from f where f match 'brown'\").fetchall())")
        self.assertEqual(self.wasm(code).text, "(3, 'a,b,c', '[1,2]')\n[('quick brown fox',)]\n")

    def test_streams(self):
        code = "import sys; print(sys.stdin.read()[::-1]); print('late', file=sys.stderr, end=''); sys.stdout.write('no newline')"
        ended = self.wasm(code, data="žluť\n".encode())
        self.assertEqual((ended.status, ended.text, ended.err), (0, "\nťulž\nno newline", b"late"))
        ended = self.wasm("import atexit, sys; atexit.register(print, 'bye'); sys.exit('why')")
        self.assertEqual((ended.status, ended.text, ended.err), (1, "bye\n", b"why\n"))

    def test_mounted_data(self):
        folder = self.folder / "data"
        folder.mkdir()
        (folder / "numbers.csv").write_text("n\n1\n2\n")
        self.own(folder)
        code = "import csv; print(sum(int(row['n']) for row in csv.DictReader(open('/data/numbers.csv'))))"
        self.assertEqual(self.wasm(code, flags=("--mount", f"{folder}:/data")).text, "3\n")

    def test_limits(self):
        accept = ("--accept-weaker", "memory") if self.as_user else ()
        self.assertEqual(self.wasm("x = bytearray(500_000_000)", flags=("--memory", "128M", *accept)).status, 124)
        self.assertEqual(self.wasm("while True: pass", flags=("--timeout", "2s")).status, 124)


if __name__ == "__main__":
    main()
