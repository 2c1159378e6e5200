# A compiler, make and what they build: programs and libraries; perl.
set -eu
cat > hello.c <<'END'
#include <math.h>
#include <stdio.h>
double twice(double x);
int main(int argc, char** argv) { printf("%s %d %.3f\n", argv[0], argc, twice(sqrt(2))); return argc; }
END
echo 'double twice(double x) { return 2 * x; }' > twice.c
cat > Makefile <<'END'
all: hello hello-shared
hello: hello.o twice.o
	cc -o $@ $^ -lm
libtwice.so: twice.c
	cc -shared -fPIC -o $@ $<
hello-shared: hello.o libtwice.so
	cc -o $@ hello.o -L. -ltwice -lm -Wl,-rpath,.
%.o: %.c
	cc -c -o $@ $<
clean:
	rm -f *.o hello hello-shared libtwice.so
END
make -s -j2
./hello && echo never || echo "status $?"
./hello-shared a b || echo "status $?"
make -q && echo "up to date"
touch -d '2001-01-01' hello && make -q || echo "out of date"
ar rc libtwice.a twice.o && ar t libtwice.a
nm twice.o | awk '{ print $2, $3 }'
file=$(readlink -f hello); test -x "$file" && echo executable
cc -E -P - <<'END' | tail -1
#define VALUE 6 * 7
VALUE
END
make -s clean && ls
perl -e 'my %h = map { $_ => $_ * $_ } 1..5; print join(",", map { "$_=$h{$_}" } sort keys %h), "\n"'
perl -ne 'print if /twice/' Makefile | wc -l
perl -e 'if (my $pid = fork) { waitpid $pid, 0; print $? >> 8, "\n" } else { exit 9 }'
perl -e '$SIG{ALRM} = sub { print "alarm\n"; exit }; alarm 1; select undef, undef, undef, 10'
