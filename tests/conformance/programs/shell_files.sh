# Files with the tools of every day: ls, cp, mv, find, sort, sed, awk, tar, xargs, dd, cmp.
set -eu
mkdir -p tree/one/two tree/three
i=0
while [ $i -lt 300 ]; do echo "file $i" > tree/one/f$i; i=$((i + 1)); done
echo "listed: $(ls tree/one | wc -l)"
echo "found: $(find tree -type f -name 'f1*' | wc -l)"
echo "with xargs: $(find tree -type f -print0 | xargs -0 cat | sort -k2 -n | tail -1)"
cp -r tree copy
diff -r tree copy && echo "copies are equal"
rm copy/one/f7
diff -r tree copy | head -1 || true
mv copy moved
test -d moved && ! test -e copy && echo "moved"
ln moved/one/f1 hard
ln -s moved/one/f2 soft
echo "links: $(stat -c %h hard) $(readlink soft) $(cat soft)"
tar cf all.tar tree
mkdir out
tar xf all.tar -C out
diff -r tree out/tree && echo "unpacked: $(tar tf all.tar | wc -l)"
gzip -c all.tar > all.tar.gz
gzip -dc all.tar.gz | cmp - all.tar && echo "gzip"
dd if=/dev/zero of=zeros bs=4096 count=16 2> /dev/null
echo "dd: $(wc -c < zeros)"
truncate -s 1M sparse
echo "sparse: $(stat -c '%s' sparse) $(du -k sparse | cut -f1)"
seq 1 1000 | awk '{ sum += $1 } END { print "awk:", sum }'
seq 1 20 | sed -n '5,7p;$p' | tr '\n' ' '; echo
printf 'b 2\na 1\n' | sort > left; printf 'a x\nb y\n' > right; join left right
seq 100 | shuf --random-source=zeros | sort -n | uniq -c | awk '$1 != 1' | wc -l
split -b 10000 zeros part. && cat part.* | cmp - zeros && echo "split: $(ls part.* | wc -l)"
touch -d '2001-02-03 04:05:06 UTC' old
echo "touched: $(stat -c %Y old) $(find . -name old -not -newer all.tar | wc -l)"
chmod 750 old
echo "mode: $(stat -c %A old)"
md5sum zeros | cut -d' ' -f1
echo a > target; echo b >> target; { tee -a target < none; } 2> /dev/null || echo "no such input"
paste -d, target target
mktemp -d ./tmp.XXXX > /dev/null && echo "mktemp: $(ls -d tmp.* | wc -l)"
comm -12 target target | wc -l
od -An -tx1 -N4 zeros
rm -rf tree moved out
echo "left: $(ls | grep -c -v '^part\|^tmp')"
