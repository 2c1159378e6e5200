# grep, sed and awk.
cd /tmp; seq 500 | awk '{ print $1, $1 * $1, sprintf("%x", $1), ($1 % 3 ? "no" : "fizz") }' > table
grep -c fizz table; grep -nE '^(1|2)00 ' table; grep -rho --include='ta*' '[0-9]*7 fizz' . | head -n 2 || true; grep -v no table | grep -Fx nothing; echo $?; grep x /nosuch; echo $?
sed -n -e '10,12p' -e '$p' table; sed -E -i.old 's/([0-9]+) ([0-9]+)/\2 \1/; /fizz/d' table; wc -l table table.old; sed = table | sed 'N; s/\n/\t/' | head -n 2
awk 'BEGIN { while ("echo one; echo two" | getline line) print "got " line; print "to sort" | "sort"; close("sort"); printf "%.3f %s\n", atan2(0, -1), substr("substring", 4, 3) }'
awk -F: '{ n[$NF]++ } END { for (k in n) print k, n[k] }' /etc/passwd | sort; awk 'BEGIN { exit system("exit 3") }'; echo $?
