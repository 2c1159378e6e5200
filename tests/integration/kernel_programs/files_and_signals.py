import fcntl, mmap, os, resource, select, shutil, signal, stat, struct, sys, tempfile, time
with tempfile.NamedTemporaryFile() as f, tempfile.TemporaryFile() as g, tempfile.TemporaryDirectory() as d, tempfile.SpooledTemporaryFile(10) as s:
    f.write(b"0123456789" * 1000); f.flush(); g.write(b"x"); s.write(b"y" * 20); print(os.path.dirname(d), os.stat(f.name).st_size, oct(os.stat(d).st_mode))
    with mmap.mmap(f.fileno(), 0) as m: m[0:3] = b"abc"; print(m.find(b"789"), m.readline()[:5], m.size()); m.flush()
    f.seek(0); print(f.read(5)); shutil.copyfile(f.name, d + "/copy"); os.truncate(d + "/copy", 5); print(open(d + "/copy").read(), os.listdir(d))
    with mmap.mmap(-1, 8192) as m:
        if os.fork() == 0: m[:4] = struct.pack("i", 4242); os._exit(0)
        os.wait(); print(struct.unpack("i", m[:4])); m.resize(4096); print(len(m))
    fcntl.lockf(f, fcntl.LOCK_EX)
    if os.fork() == 0:
        try: fcntl.lockf(open(f.name, "rb+"), fcntl.LOCK_EX | fcntl.LOCK_NB); os._exit(0)
        except OSError: os._exit(1)
    print(os.wait()[1])
caught = []
for name in ("USR1", "USR2", "TERM", "HUP", "WINCH", "CHLD"): signal.signal(getattr(signal, "SIG" + name), lambda n, _: caught.append(n))
for number in (10, 12, 15, 1, 28): os.kill(os.getpid(), number)
print(sorted(caught)); signal.pthread_sigmask(signal.SIG_BLOCK, {10}); os.kill(os.getpid(), 10); print(signal.sigpending(), signal.sigwait({10}))
signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("alarm"))); signal.setitimer(signal.ITIMER_REAL, 0.03)
try: time.sleep(5)
except TimeoutError as e: print(e)
signal.setitimer(signal.ITIMER_REAL, 0); r, w = os.pipe(); signal.set_wakeup_fd(w, warn_on_full_buffer=False) if not os.set_blocking(w, False) else 0
os.kill(os.getpid(), 15); print(select.select([r], [], [], 1)[0] == [r], os.read(r, 5)); signal.set_wakeup_fd(-1)
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
try: [os.open("/dev/null", os.O_RDONLY) for _ in range(30)]
except OSError as e: print(e)
os.closerange(3, 30); print(sorted(os.listdir("/proc/self/fd"))[:3], os.readlink("/proc/self/exe"), sys.getfilesystemencoding(), stat.filemode(os.stat("/tmp").st_mode), flush=True); signal.signal(15, signal.SIG_DFL); os.kill(os.getpid(), 15)
