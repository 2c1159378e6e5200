const { Worker, isMainThread, parentPort, workerData } = require('worker_threads'), cp = require('child_process'), fs = require('fs');
if (!isMainThread) {
  if (workerData.shared) { const cells = new Int32Array(workerData.shared); for (let i = 0; i < 1000; ++i) Atomics.add(cells, 0, 1); parentPort.postMessage('added'); }
  else parentPort.on('message', m => { parentPort.postMessage(m * 2); parentPort.close(); });
} else (async () => {
  const shared = new SharedArrayBuffer(4);
  await Promise.all([1, 2, 3].map(() => new Promise(done => new Worker(__filename, { workerData: { shared } }).on('exit', done))));
  console.log(new Int32Array(shared)[0]);
  const worker = new Worker(__filename, { workerData: {} }); worker.postMessage(21); console.log(await new Promise(done => worker.on('message', done)));
  console.log(cp.execSync('echo sync; seq 3').toString(), cp.spawnSync('sh', ['-c', 'cat >&2; exit 5'], { input: 'in' }).status);
  const child = cp.spawn('sort', ['-r']); child.stdin.end('a\nb\nc\n'); let text = ''; child.stdout.on('data', d => text += d); console.log(await new Promise(done => child.on('close', done)), text);
  fs.writeFileSync('/tmp/child.js', "process.on('message', m => { process.send(m + ' back'); process.disconnect(); })");
  const fork = cp.fork('/tmp/child.js'); fork.send('there and'); console.log(await new Promise(done => fork.on('message', done)), await new Promise(done => fork.on('close', done)));
  await fs.promises.writeFile('/tmp/n', 'ž🎅'.repeat(10000)); console.log((await fs.promises.readFile('/tmp/n', 'utf8')).length, (await fs.promises.stat('/tmp/n')).size, fs.readdirSync('/tmp').sort().join());
  fs.mkdirSync('/tmp/w'); const seen = new Promise(done => { const w = fs.watch('/tmp/w', (kind, name) => { w.close(); done(kind + name); }); }); fs.writeFileSync('/tmp/w/new', ''); console.log(await seen);
  const zlib = require('zlib'); console.log(zlib.gunzipSync(zlib.gzipSync('zip'.repeat(1000))).length, require('crypto').createHash('sha256').update('x').digest('hex'));
  const net = require('net'), server = net.createServer(s => s.pipe(s)).listen('/tmp/s', () => { const c = net.connect('/tmp/s'); c.end('over a socket'); c.on('data', d => { console.log(d.toString()); server.close(); }); });
  process.on('SIGUSR2', () => { console.log('SIGUSR2'); }); process.kill(process.pid, 'SIGUSR2'); await new Promise(done => setTimeout(done, 30)); console.error('to stderr'); process.exitCode = 6;
})();
