use strict; use warnings; use POSIX qw(strftime :sys_wait_h); use Fcntl ':flock'; use List::Util 'sum'; use Data::Dumper; $Data::Dumper::Sortkeys = 1; $| = 1;
my %count; $count{$_ % 3}++ for 1 .. 100; print Dumper(\%count), sum(1 .. 10), "\n", strftime("%F", gmtime 0), "\n";
open my $out, '>', '/tmp/p' or die; flock $out, LOCK_EX; print $out "line $_\n" for 1 .. 3; close $out; open my $in, '<', '/tmp/p'; my @lines = <$in>; print scalar(@lines), " $lines[-1]";
pipe my $r, my $w; my $pid = fork; if (!$pid) { close $r; print $w "from the child\n"; exit 6 } close $w; print <$r>; waitpid $pid, 0; print WEXITSTATUS($?), "\n";
local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; select undef, undef, undef, 5; }; print $@; print `echo back; exit 2`, $? >> 8, "\n"; (my $t = "a1b22") =~ s/(\d+)/<$1>/g; print "$t\n";
kill 'USR1', $$ if $SIG{USR1} = sub { print "handled $_[0]\n" }; opendir my $d, '/proc/self/fd'; print scalar(grep /^[012]$/, readdir $d), "\n"; -d '/etc' && !-w '/etc' and print "read only\n"; print STDERR "to stderr\n"; die "the end";
