# Text through grep, sed, awk, sort, cut, xz and others, with files and pipes large enough to fill buffers.
set -eu
seq 1 20000 > numbers
wc < numbers | tr -s ' '
grep -c 7 numbers
grep -n '^1999[0-9]$' numbers | head -2
grep -v -E '[0-8]' numbers | tr '\n' ' '; echo
sed -e 's/\(.\)\(.*\)/\2\1/' numbers | sort -n | sed -n '1p;$p'
awk 'length($0) == 5 { n++ } END { print n }' numbers
sort -r -n numbers | head -1
sort -R numbers | sort -n | cmp - numbers && echo "sorted again"
sort -S 100k -T . -n -r numbers | tail -1
cut -c1-2 numbers | sort -u | wc -l
paste -s -d+ numbers | cut -c1-12
xz -k numbers && xz -dc numbers.xz | cmp - numbers && echo xz
bzip2 -k numbers 2> /dev/null && bzip2 -dc numbers.bz2 | cmp - numbers && echo bzip2 || echo "bzip2 is not here"
gzip -9 < numbers | gunzip | tail -1
head -c 100000 numbers | base64 -w 0 | base64 -d | cmp -n 100000 - numbers && echo base64
tr -d '\n' < numbers | fold -w 1000 | wc -l
cat numbers numbers numbers | uniq -d | wc -l
nl -ba numbers | tail -1 | tr -s ' \t' ' '
tac numbers | head -1
rev numbers | head -12 | tail -1
expand -t 4 <<END | od -c | head -2
	tab
END
csplit -s numbers 100 '{3}' && wc -l xx00 | cut -d' ' -f1
printf '%05d|%-5s|%x\n' 42 left 255
expr 6 '*' 7; echo $((1 << 20))
tail -f numbers --pid=$$ -n 1 & sleep 0.2; kill $!
find . -name 'xx*' -size -1k | wc -l
diff <<END - /dev/null | head -2 || true
gone
END
tee one two < xx00 > three; cmp three one && cmp one two && echo tee
date -u -d @1000000000 '+%F %T'
