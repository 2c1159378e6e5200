"""RES-23: bombs for compilers, interpreters and unpackers. They meet the limits of any other run."""

import os
import subprocess
import zipfile

from harness import callers, main, not_covered
from outside import MIB, OutsideTest, limits

TEMPLATES = """
template <int N, int M> struct grow {
  static const unsigned long value = grow<N - 1, M * 2>::value + grow<N - 1, M * 2 + 1>::value;
};
template <int M> struct grow<0, M> { static const unsigned long value = M; };
int main() { return grow<40, 1>::value; }
"""


class Res23(OutsideTest):
    def assert_ended_by_a_limit(self, result, seconds: float = 2) -> None:
        """In the way of any run: by the clock, by memory, or by the tool's own complaint about one of them."""
        self.assertIn(result.status, ("timeout", "memory", "error", "disk", "signal"), result)
        self.assertLess(result.record["duration_ms"], seconds * 1000 + 4000)

    def bomb(self, argv: list[str], mount: str = "", seconds: float = 2) -> None:
        for caller in callers():
            with self.subTest(caller=caller, argv=argv[0]):
                flags = ["--timeout", f"{seconds}s", *limits(caller, memory="200M")]
                if mount:
                    flags += ["--mount", f"{mount}:/bomb"]
                self.assert_ended_by_a_limit(self.sandbox(argv, flags, caller), seconds)

    def test_templates(self):
        if not os.access("/usr/bin/g++", os.X_OK):
            return not_covered("bombs for compilers", "there is no g++ here")
        source = self.host_file(TEMPLATES, "bomb.cc")
        self.bomb(["sh", "-c", "g++ -x c++ -c -o /tmp/bomb.o /bomb"], source)

    def test_endless_includes(self):
        if not os.access("/usr/bin/gcc", os.X_OK):
            return not_covered("bombs for compilers", "there is no gcc here")
        for device in ("/dev/zero", "/dev/urandom"):
            self.bomb(["sh", "-c", f"echo '#include \"{device}\"' | gcc -x c -c -o /tmp/bomb.o -"])

    def test_macros(self):
        if not os.access("/usr/bin/gcc", os.X_OK):
            return not_covered("bombs for compilers", "there is no gcc here")
        lines = ["#define X0 x x x x x x x x x x"]
        lines += [f"#define X{n} " + f"X{n - 1} " * 10 for n in range(1, 12)]
        self.bomb(["sh", "-c", "gcc -x c -E -o /tmp/bomb.i /bomb"],
                  self.host_file("\n".join([*lines, "X11"]), "macros.c"))

    def test_regular_expression(self):
        self.bomb(["python3", "-c", "import re; re.match('(a+)+$', 'a' * 60 + 'b')"], seconds=1)

    def test_numbers_and_nesting(self):
        self.bomb(["python3", "-c", "x = 9 ** 9 ** 9"], seconds=1)
        self.bomb(["python3", "-c", "exec('(' * 100000 + ')' * 100000)"], seconds=2)
        self.bomb(["python3", "-c", "import json; json.loads('[' * 10000000)"], seconds=2)

    def test_unpacking(self):
        path = self.folder / "bomb.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(4):
                archive.writestr(f"zeros{number}", bytes(64 * MIB))
        path.chmod(0o644)
        self.assertLess(path.stat().st_size, MIB)
        for caller in callers():
            with self.subTest(caller=caller):
                result = self.sandbox(["python3", "-m", "zipfile", "-e", "/bomb", "/tmp/out"],
                                      ["--mount", f"{path}:/bomb", "--timeout", "30s"], caller)
                self.assertEqual(result.status, "disk", result)
                self.assertIn("No space left", result.stderr)
                result = self.sandbox(["python3", "-c", "import zlib\nd = zlib.decompressobj()\n"
                                       "b = zlib.compress(bytes(1 << 20)) * 1\nheld = []\n"
                                       "while True: held.append(zlib.decompress(b))"], ["--timeout", "30s"], caller)
                self.assertEqual(result.status, "memory", result)
        out = self.folder / "out"
        subprocess.run(["/usr/bin/python3", "-m", "zipfile", "-e", path, out], check=True, timeout=60)
        self.assertEqual(sum(file.stat().st_size for file in out.iterdir()), 256 * MIB)

    def test_a_legal_compile(self):
        if not os.access("/usr/bin/gcc", os.X_OK):
            return not_covered("a compile", "there is no gcc here")
        for caller in callers():
            with self.subTest(caller=caller):
                line = "echo 'int main(void) { return 7; }' | gcc -x c -o /tmp/a - && /tmp/a"
                result = self.sandbox(["sh", "-c", line], caller=caller)
                self.assertEqual((result.status, result.exit_status), ("error", 7), result)


if __name__ == "__main__":
    main()
