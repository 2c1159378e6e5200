import queue, signal, threading, time, concurrent.futures
lock, total, work = threading.Lock(), [0], queue.Queue()
def add():
    for _ in range(2000):
        with lock: total[0] += 1
threads = [threading.Thread(target=add) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]; print(total)
condition, seen = threading.Condition(), []
def consume():
    while (item := work.get()) is not None: seen.append(item)
consumer = threading.Thread(target=consume); consumer.start(); [work.put(i) for i in range(1000)]; work.put(None); consumer.join(); print(sum(seen))
barrier, event, local = threading.Barrier(4), threading.Event(), threading.local()
def meet(): barrier.wait(5); event.wait(5)
threads = [threading.Thread(target=meet) for _ in range(4)]; [t.start() for t in threads]; time.sleep(0.02); event.set(); [t.join() for t in threads]; print(barrier.broken)
with concurrent.futures.ThreadPoolExecutor(4) as pool: print(sum(pool.map(lambda n: n * n, range(100))))
print(lock.acquire(timeout=1), lock.acquire(timeout=0.05), threading.Timer(0.01, print, ("timer",)).start()); time.sleep(0.2)
signal.signal(signal.SIGALRM, lambda *_: print("alarm in", threading.current_thread().name)); signal.setitimer(signal.ITIMER_REAL, 0.02); time.sleep(0.1)
threading.excepthook = lambda args: print("died of", args.exc_type.__name__)
t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join(); raise SystemExit(5)
