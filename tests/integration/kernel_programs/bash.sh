# Pipelines, here-documents, traps, background jobs, wait, process substitution, arrays.
set -u -o pipefail
seq 100 | grep 7 | sort -r | head -n 3
seq 20000 | awk '{ sum += $1 } END { print sum }' | tee /tmp/sum | wc -l; cat /tmp/sum
false | true; echo "pipefail $? ${PIPESTATUS[*]}"
cat << TEXT | tr a-z A-Z
here is $((6 * 7)) of $(echo them | rev)
TEXT
cat <<- 'TEXT' > /tmp/raw
	no $expansion
	TEXT
cat /tmp/raw; read -r first rest <<< "one two three"; echo "$rest, $first"
diff <(seq 5) <(seq 2 6); echo "differ $?"
exec 5> >(sed 's/^/to /' > /tmp/to); to=$!; seq 3 >&5; exec 5>&-; wait $to; cat /tmp/to
trap 'echo "signal USR1"' USR1; kill -USR1 $$; trap 'echo "exit trap $?"' EXIT
(trap 'echo sub ends' EXIT; exit 3); echo "subshell $?"
for i in 1 2 3; do (sleep 0.0$i; exit $i) & pids[i]=$!; done
for i in 3 1 2; do wait "${pids[i]}"; echo "job $i: $?"; done
sleep 100 & sleep 0.1; kill $!; wait $! 2> /dev/null; echo "killed $?"
{ echo in; echo err >&2; } 2> /tmp/err | cat; cat /tmp/err
coproc DOUBLE { while read -r n; do echo $((n * 2)); done; }
echo 21 >&"${DOUBLE[1]}"; read -r answer <&"${DOUBLE[0]}"; echo "coproc $answer"
declare -A map=([a]=1 [b]=2); for key in a b; do echo "$key=${map[$key]}"; done
text=abcabc; echo "${text//b/X} ${text^^} ${#text} ${text:2:3}"
shopt -s extglob nullglob
mkdir -p /tmp/g/{x,y}; touch /tmp/g/{x,y}/{1..3}.{c,h}; echo /tmp/g/*/!(2).c; echo /tmp/g/none*
timeout 0.1 sleep 5; echo "timeout $?"; nosuchcommand; echo "no command $?"
exit 9
