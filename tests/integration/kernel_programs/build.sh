# make, gcc and g++: a library, a program of two languages, dependencies, parallel jobs, an error.
mkdir /tmp/build; cd /tmp/build || exit
cat > Makefile << 'TEXT'
CFLAGS = -O1 -Wall
OBJECTS = $(patsubst %,part%.o,1 2 3)
all: program
part%.c:
	@echo 'int part$*(void) { return $*; }' > $@
libparts.a: $(OBJECTS)
	@ar rcs $@ $^
program: main.o libparts.a
	@$(CXX) -o $@ main.o -L. -lparts -lpthread && echo linked
main.o: main.cc
	@$(CXX) -O1 -c $<
.PRECIOUS: part%.c
broken:
	@exit 3
TEXT
cat > main.cc << 'TEXT'
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
extern "C" int part1(); extern "C" int part2(); extern "C" int part3();
int main(int argc, char** argv) {
  std::map<std::string, int> parts;
  std::thread([&] { parts["sum"] = part1() + part2() + part3(); }).join();
  try { throw std::runtime_error("caught"); } catch (const std::exception& e) { std::printf("%s %d %s\n", e.what(), parts["sum"], argv[1]); }
  return argc + 5;
}
TEXT
make -s -j3; ./program word; echo "status $?"; make -s; touch main.cc; make -s -q; echo "stale $?"; make -s broken; echo "make $?"
printf '#include <math.h>\n#include <stdio.h>\nint main(void) { printf("%%.4f\\n", sqrt(2.0 * getchar())); return 0; }' > c.c
gcc -O2 -static -o c c.c -lm && echo A | ./c; echo 'int main(void) { return nothing; }' > bad.c; gcc bad.c; echo "gcc $?"; ls
