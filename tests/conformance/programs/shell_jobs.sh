# Processes with a shell: pipelines, background jobs, traps, here-documents, redirections, subshells; then bash's own.
set -u
echo one | cat | cat | tr a-z A-Z
false | true; echo "status of a pipeline: $?"
(exit 7); echo "subshell: $?"
sleep 0.05 & wait $!; echo "waited: $?"
{ sh -c 'kill -TERM $$'; } 2> /dev/null; echo "killed: $?"
none-there 2> /dev/null; echo "not found: $?"
trap 'echo trapped' USR1
kill -USR1 $$
trap - USR1
(trap 'echo leaving' EXIT; exit 3); echo "with a trap: $?"
cat <<END
here: $((6 * 7)) $(echo nested $(echo deeper))
END
{ echo out; echo err >&2; } > both 2>&1; sort both
exec 5> five; echo "to five" >&5; exec 5>&-; cat five
exec 6< five; read -r line <&6; echo "from six: $line"; exec 6<&-
echo appended >> five; wc -l < five
for i in 1 2 3; do (sleep 0.0$i; echo "job $i" >> jobs) & done; wait; sort jobs
i=0; while read -r word; do i=$((i + 1)); echo "$i $word"; done <<END
first
second
END
x=$(printf 'a\nb\n\n\n'); echo "[$x]"
mkfifo fifo; echo "through a fifo" > fifo & cat fifo; wait
yes | head -3 | tr '\n' ' '; echo
ulimit -n > /dev/null && echo "ulimit"
(ulimit -n 20; ulimit -n)
umask 077; touch private; stat -c %a private
export VARIABLE=exported; sh -c 'echo $VARIABLE'
timeout 0.1 sleep 5; echo "timeout: $?"
nice -n 3 sh -c 'nice'
bash -c '
set -o pipefail; false | true; echo "pipefail: $?"
diff <(echo same) <(echo same) && echo "process substitution"
array=(a b "c d"); echo "${#array[@]} ${array[2]}"
declare -A map=([k]=v); echo "${map[k]}"
coproc CAT { cat; }; echo question >&${CAT[1]}; read -r answer <&${CAT[0]}; echo "coproc: $answer"; kill $CAT_PID; wait $CAT_PID
read -r -t 0.05 nothing < <(sleep 0.3); [ $? -gt 128 ] && echo "read timed out"
(sleep 0.5; exit 5) & (sleep 0.01; exit 6) & wait -n; echo "first to end: $?"; wait
shopt -s extglob nullglob
touch g1 g2 h1; echo g* !(g*|h*|[a-f]*|j*|p*|*.*|i*|z*|t*|o*|s*)
printf "%s\n" {1..3}{a,b} | wc -l
trap "echo int" INT; kill -INT $$; trap - INT
set -m; sleep 5 & kill -STOP %1; sleep 0.05; jobs | grep -c Stopped; kill -KILL %1; wait %1 2> /dev/null; echo "job: $?"
' 2> /dev/null
