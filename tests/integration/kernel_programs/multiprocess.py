"""multiprocess.py fork|spawn: pools, queues, locks, values and shared memory."""
import multiprocessing as mp, os, sys
from multiprocessing import shared_memory
def square(n): return n * n
def fail(): raise SystemExit(3)
def add(lock, value, array, queue, index):
    for _ in range(300):
        with lock: value.value += 1
    array[index] = index; queue.put(index)
def share(name, start, done):
    block = shared_memory.SharedMemory(name); start.wait(10); block.buf[:5] = bytes(reversed(block.buf[:5])); block.close(); done.set()
def echo(end): end.send(end.recv()[::-1]); end.close()
if __name__ == "__main__":
    how = mp.get_context(sys.argv[1])
    with how.Pool(2) as pool: print(pool.map(square, range(10)), pool.apply_async(square, (12,)).get(20))
    lock, value, array, queue = how.Lock(), how.Value("i", 0), how.Array("i", 3), how.Queue()
    workers = [how.Process(target=add, args=(lock, value, array, queue, i)) for i in range(3)]
    [w.start() for w in workers]; print(sorted(queue.get(timeout=20) for _ in workers)); [w.join() for w in workers]; print(value.value, array[:], [w.exitcode for w in workers])
    block = shared_memory.SharedMemory(create=True, size=100); block.buf[:5] = b"abcde"; start, done = how.Event(), how.Event()
    other = how.Process(target=share, args=(block.name, start, done)); other.start(); start.set(); print(done.wait(20), bytes(block.buf[:5])); other.join(); block.close(); block.unlink()
    here, there = how.Pipe(); other = how.Process(target=echo, args=(there,)); other.start(); here.send([1, "x" * 100000]); print(len(here.recv()[0])); other.join()
    other = how.Process(target=fail); other.start(); other.join(); print(other.exitcode, len(os.listdir("/dev/shm")))
    with how.Manager() as manager: shared = manager.dict(a=1); shared["b"] = 2; print(dict(shared))
