# Globbing over 10,000 files.
mkdir /tmp/many; cd /tmp/many || exit
seq -f 'file-%05g' 10000 | xargs touch
set -- *; echo $#; set -- *7; echo $# "$1" "${1000}"; set -- file-0[0-4]*[!5-9]; echo $#
ls | wc -l; ls -U | sort | sha256sum; find . -name '*99' | sort | tail -n 2; rm -- *5; set -- *; echo $#
rm -r /tmp/many; ls /tmp/many
