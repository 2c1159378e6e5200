"""asyncio: subprocesses, pipes, sockets of unix(7), signals, threads, timeouts, queues."""
import asyncio
import os
import signal
import sys
import tempfile


def fact(name, value):
    print(f"{name}: {value}", flush=True)


async def processes():
    child = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    out, _ = await child.communicate(b"through cat")
    fact("cat", (out, child.returncode))
    child = await asyncio.create_subprocess_shell("echo out; echo err >&2; exit 3", stdout=asyncio.subprocess.PIPE,
                                                  stderr=asyncio.subprocess.PIPE)
    fact("shell", (await child.communicate(), child.returncode))
    child = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        await asyncio.wait_for(child.wait(), 0.1)
    except asyncio.TimeoutError:
        child.kill()
        fact("killed", await child.wait())
    children = [await asyncio.create_subprocess_exec(sys.executable, "-c", f"print({i}, end='')", stdout=asyncio.subprocess.PIPE)
                for i in range(4)]
    fact("four at once", [(await each.communicate())[0] for each in children])


async def sockets():
    async def answer(reader, writer):
        while line := await reader.readline():
            writer.write(line.upper())
            await writer.drain()
        writer.close()

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        server = await asyncio.start_unix_server(answer, path)

        async def ask(number):
            reader, writer = await asyncio.open_unix_connection(path)
            for i in range(20):
                writer.write(f"client {number} line {i}\n".encode())
            writer.write_eof()
            lines = (await reader.read()).splitlines()
            writer.close()
            return len(lines), lines[-1]

        fact("clients", await asyncio.gather(*(ask(number) for number in range(5))))
        server.close()
        await server.wait_closed()


async def signals():
    seen = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, seen.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(seen.wait(), 5)
    fact("signal", loop.remove_signal_handler(signal.SIGUSR1))


async def pipes():
    read_end, write_end = os.pipe()
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb"))
    await asyncio.to_thread(os.write, write_end, b"from a thread\n")
    fact("pipe", await reader.readline())
    os.close(write_end)
    fact("end", await reader.read())
    transport.close()


async def tasks():
    queue = asyncio.Queue(2)

    async def produce():
        for i in range(10):
            await queue.put(i)
        await queue.put(None)

    async def consume():
        total = 0
        while (item := await queue.get()) is not None:
            total += item
        return total

    _, total = await asyncio.gather(produce(), consume())
    fact("queue", total)
    order = []

    async def later(delay):
        await asyncio.sleep(delay)
        order.append(delay)

    await asyncio.gather(later(0.15), later(0.05), later(0.1))
    fact("order", order)
    task = asyncio.create_task(asyncio.sleep(60))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        fact("cancelled", task.cancelled())


async def main():
    await processes()
    await sockets()
    await signals()
    await pipes()
    await tasks()


asyncio.run(main())
