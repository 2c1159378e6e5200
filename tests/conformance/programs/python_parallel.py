"""Threads, processes, asyncio and shared state in Python."""

import asyncio
import concurrent.futures as futures
import mmap
import multiprocessing
import os
import queue
import socket
import sqlite3
import sys
import threading
from multiprocessing import shared_memory


def square(n):
    return n * n


def count(lock, value):
    for _ in range(100):
        with lock:
            value.value += 1


async def talk():
    process = await asyncio.create_subprocess_exec("tr", "a-z", "A-Z", stdin=-1, stdout=-1)
    print((await process.communicate(b"piped"))[0])
    print(await asyncio.gather(*(asyncio.to_thread(square, n) for n in range(5))))
    try:
        await asyncio.wait_for(asyncio.sleep(9), 0.05)
    except TimeoutError:
        print("timeout")


def main():
    with futures.ThreadPoolExecutor(8) as pool:
        print(sum(pool.map(square, range(1000))))
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, pool.map(square, range(5)))
    lock, value = multiprocessing.Lock(), multiprocessing.Value("i")
    workers = [multiprocessing.Process(target=count, args=(lock, value)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(value.value, [worker.exitcode for worker in workers])
    memory = shared_memory.SharedMemory(create=True, size=1 << 16)
    child = os.fork()
    if child == 0:
        memory.buf[:3] = b"abc"
        os._exit(0)
    os.waitpid(child, 0)
    print(bytes(memory.buf[:4]))
    memory.close()
    memory.unlink()
    jobs, results = queue.Queue(), queue.Queue()
    threads = [threading.Thread(target=lambda: results.put(square(jobs.get()))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for n in range(20):
        jobs.put(n)
    for thread in threads:
        thread.join()
    print(sum(results.get() for _ in range(20)))
    asyncio.run(talk())
    with open("map", "wb+") as file:
        file.truncate(10000)
        with mmap.mmap(file.fileno(), 0) as view:
            view[9990:9995] = b"hello"
            print(view.find(b"hello"))
    database = sqlite3.connect("a.db")
    database.executescript("pragma journal_mode=wal; create table t(x); insert into t values (1), (2);")
    print(database.execute("select sum(x) from t").fetchone())
    a, b = socket.socketpair()
    socket.send_fds(a, [b"x"], [0])
    print(len(socket.recv_fds(b, 1, 5)[1]))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
