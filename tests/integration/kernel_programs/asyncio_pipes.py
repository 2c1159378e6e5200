import asyncio, os, signal, sys
async def main():
    child = await asyncio.create_subprocess_exec("sort", "-n", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    print((await child.communicate(b"3\n1\n2\n"))[0], child.returncode)
    many = [await asyncio.create_subprocess_shell(f"sleep 0.0{i}; echo {i}; exit {i}", stdout=asyncio.subprocess.PIPE) for i in range(6)]
    print([(await c.communicate())[0] for c in many], [c.returncode for c in many])
    r, w = os.pipe(); loop = asyncio.get_running_loop(); reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(r, "rb")); transport, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(w, "wb"))
    transport.write(b"x" * 300000); transport.close(); print(len(await reader.read()))
    async def serve(i, o): o.write((await i.readline()).upper()); await o.drain(); o.close()
    async with await asyncio.start_unix_server(serve, "/tmp/sock"):
        async def ask(n): i, o = await asyncio.open_unix_connection("/tmp/sock"); o.write(b"call %d\n" % n); text = await i.read(); o.close(); return text
        print(await asyncio.gather(*map(ask, range(20))))
    got = asyncio.Event(); loop.add_signal_handler(signal.SIGUSR1, got.set); os.kill(os.getpid(), signal.SIGUSR1); await asyncio.wait_for(got.wait(), 5); print("signal")
    sleeper = await asyncio.create_subprocess_exec("sleep", "9"); sleeper.terminate(); print(await sleeper.wait())
    try: await asyncio.wait_for(asyncio.sleep(9), 0.05)
    except asyncio.TimeoutError: print("timeout")
    print(await loop.run_in_executor(None, sum, range(100)))
asyncio.run(main()); print("bye", file=sys.stderr)
