# tar, gzip, xz.
cd /tmp; mkdir -p tree/deep; seq 50000 > tree/numbers; head -c 300000 /bin/sh > tree/deep/binary; ln -s numbers tree/link; ln tree/numbers tree/hard; chmod 700 tree/deep
for z in gz xz; do tar -cf tree.tar.$z -a --sort=name --mtime=@1 --owner=0 --group=0 tree; mkdir out.$z; tar -xf tree.tar.$z -C out.$z; diff -r tree out.$z/tree && echo "$z same"; tar -tvf tree.tar.$z | awk '{ print $1, $3, $6, $7, $8 }'; done
cp tree/numbers copy; mv copy tree/numbers; gzip -9kn tree/numbers; gzip -l tree/numbers.gz | awk 'NR == 2 { print $2 }'; zcat tree/numbers.gz | sha256sum; xz -T2 -k tree/numbers; xz -dc tree/numbers.xz | sha256sum
echo broken | gzip -d; echo $?; echo broken | xz -d; echo $?; tar -cf - tree | (cd out.gz; tar -xpf -; stat -c '%a %h' tree/deep tree/hard)
tar -cf listed.tar --sort=name --exclude='*bin*' tree; tar -tf listed.tar | sort; tar -xOf listed.tar tree/numbers | tail -n 1; tar -xf nosuch.tar; echo $?
