# What shells and the usual tools do with files, pipes, jobs, traps and exit statuses.
set -u
exec 2> /dev/null # what shells say of killed jobs differs in their names
echo one > a && echo two >> a && cat a
mkdir -p d/e && touch d/e/f && find d | sort
cp -r d g && rm -r d && ls g/e
ln -s a link && readlink link && cat link && rm link
printf '3\n1\n2\n' | sort -n | tr '\n' ' ' && echo
seq 1 100000 | head -n 2
yes | head -n 1
(exit 3); echo "status $?"
sh -c 'kill -TERM $$'; echo "status $?"
false | true; echo "pipe $?"
! true; echo "not $?"
nosuchcommand 2> /dev/null; echo "missing $?"
./a 2> /dev/null; echo "not executable $?"
trap 'echo caught' USR1; kill -USR1 $$; trap - USR1
sleep 0.05 & wait $!; echo "waited $?"
sleep 9 & kill $!; wait $!; echo "killed $?"
(echo child; exit 4) & wait; echo done
cat <<TEXT | wc -l
1
2
TEXT
echo "$(echo nested $(echo substitution))"
umask; umask 077; touch private; stat -c %a private
chmod 640 private; stat -c '%a %F' private
test -w private && test ! -x private && echo permissions
mkfifo pipe; echo through > pipe & cat pipe
tar -cf t.tar a g && tar -tf t.tar | sort
gzip -k a && gunzip -c a.gz | cmp - a && echo same
awk 'BEGIN { print length("žž"), 2 ^ 10 }'; printf 'ž' | wc -c
sed 's/o/0/g' a; grep -c o a; cut -c1 a | paste -sd,
date -u -d @0 '+%F %T'
dd if=/dev/zero of=zeros bs=1k count=64 2> /dev/null; stat -c %s zeros; rm zeros
env -i sh -c 'echo "${HOME-unset}"'
echo null > /dev/null; echo full 2> /dev/null > /dev/full || echo "full device"
head -c 4 /dev/zero | od -An -tx1
ulimit -n > /dev/null && echo limits
exec 3> three; echo three >&3; exec 3>&-; cat three
xargs -n 1 echo < a
expr 6 \* 7; basename /x/y.z .z; dirname /x/y
