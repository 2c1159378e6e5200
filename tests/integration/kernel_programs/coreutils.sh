# Coreutils and findutils.
cd /tmp; umask 022
mkdir -p a/b/c; echo one > a/one; echo two > a/b/two; ln -s ../one a/b/link; ln a/one a/hard; mkfifo a/fifo; chmod 640 a/b/two
stat -c '%n %F %a %h %s' a a/one a/b/two a/b/link a/fifo
cp -a a copy; diff -r a/b copy/b && echo same; readlink -f copy/b/link; mv copy/b moved; ls -R moved copy
find a -type f -newer /etc/passwd -printf '%P %s %m\n' | sort; find a -type l -exec readlink {} +; find a -name two -delete; find a | sort
seq 1000 | shuf --random-source=<(yes) 2>/dev/null | sort -n | uniq | tail -n 1; seq 10 | paste -sd+ | tr + ' '
printf 'b 2\na 1\nc 3\n' | sort -k2nr | cut -d' ' -f1; printf 'a\nb\n' | nl; join <(echo '1 x') <(echo '1 y') 2>/dev/null
head -c 100000 /dev/zero | sha256sum; dd if=/dev/zero of=big bs=64k count=10 2> /dev/null; truncate -s 5M big; du --apparent-size -k big; split -n 5 big part.; cat part.* | cmp - big && echo whole
echo aGVsbG8K | base64 -d; od -An -tx1 /bin/sh | head -n 1; date -u -d @0 +%F; numfmt --to=iec 123456; seq 3 | tac; echo 'a b' | xargs -n1 echo item
seq 100 | xargs -P 4 -n 10 echo | wc -w; env -i A=1 env; nice -n 5 nice; id -u; pwd; basename /a/b.c .c; expr 6 '*' 7; test -e a/one; echo $?
touch -d '2001-02-03 04:05:06 UTC' stamp; stat -c %Y stamp; ls -l --time-style=+%s stamp | cut -d' ' -f6-; rmdir a; rm nosuch; cat /etc/shadow; echo $?
echo x | tee one two > three; cat one two three; sync one; mktemp -d /tmp/tXXXXXX | cut -c1-6; timeout -s KILL 0.1 sleep 9; echo $?; kill -l 11
