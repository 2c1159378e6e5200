set -eu
x=$(printf '%s,' a b c); echo "${x%,}" "${x#a}"
f() { local n=$1; [ "$n" -le 1 ] && { echo 1; return; }; echo $((n * $(f $((n - 1))))); }; f 10
trap 'echo got TERM; exit 4' TERM
while read -r a b; do echo "$b-$a"; done << TEXT
1 one
2 two
TEXT
(sleep 0.05; kill -TERM $$) & wait; echo not reached
