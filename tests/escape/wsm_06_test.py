"""WSM-06: read what an earlier module left in memory or in a table. Every instance begins with zeros."""

from harness import callers, main
from modules import WasmTest, wasm_modules

# argv[1]: "write" fills all memory that it can get with the canary, "find" counts what is not zero beyond its own data.
PROBE = r"""
#include <stdio.h>
#include <string.h>
extern unsigned char __heap_base;
int main(int argc, char** argv) {
  unsigned char* begin = &__heap_base;
  __builtin_wasm_memory_grow(0, 200);
  unsigned char* end = (unsigned char*)(__builtin_wasm_memory_size(0) * 65536ul);
  /* The C library's heap is in use a little; the pages past the first hundred are nobody's. */
  begin += 100 * 65536;
  if (!strcmp(argv[1], "write") || !strcmp(argv[1], "both"))
    for (unsigned char* at = begin; at + 16 <= end; at += 16) memcpy(at, "canary-of-module", 16);
  unsigned long found = 0;
  if (strcmp(argv[1], "write"))
    for (unsigned char* at = begin; at < end; ++at) found += *at != 0;
  printf("%lu\n", found);
  return 0;
}
"""
# Exits with 1 where an element of a fresh table is not null.
TABLE = wasm_modules.from_wat("""
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (table $t 10000 funcref)
  (elem declare func $f)
  (func $f)
  (func (export "_start") (local $i i32)
    (loop $next
      (if (i32.eqz (ref.is_null (table.get $t (local.get $i)))) (then (call $exit (i32.const 1))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 10000))))
    (table.fill $t (i32.const 0) (ref.func $f) (i32.const 10000))
    (if (ref.is_null (table.get $t (i32.const 9999))) (then (call $exit (i32.const 2))))))
""")


class Wsm06(WasmTest):
    def count(self, what: str, caller) -> int:
        return int(self.wasm(wasm_modules.from_c(PROBE), caller=caller, arguments=[what]).stdout)

    def test_positive_control(self) -> None:
        """What a module wrote itself, it finds."""
        for caller in callers():
            self.assertGreater(self.count("both", caller), 5_000_000)

    def test_memory_is_fresh(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                for _ in range(3):
                    self.count("write", caller)
                    self.assertEqual(self.count("find", caller), 0)

    def test_tables_are_fresh(self) -> None:
        for caller in callers():
            for _ in range(3):
                self.assertEqual(self.wasm(TABLE, caller=caller).status, "ok")


if __name__ == "__main__":
    main()
