// An HTTPS server that speaks HTTP/1.1 and HTTP/2, writes down each request as a line of JSON, and echoes what it got.
// node api_server.js ADDRESS PORT KEY CERTIFICATE LOG; without KEY and CERTIFICATE ("-") plain HTTP/1.1.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const http2 = require('http2');

const [address, port, key, certificate, log] = process.argv.slice(2);

let stream;

function answer(request, response, body) {
  const path = request.url.split('?')[0];
  const page = path.replace(/^\/v1/, '');
  const query = new URLSearchParams(request.url.split('?')[1]);
  const seen = JSON.stringify(request.headers);
  fs.appendFileSync(log, JSON.stringify({version: request.httpVersion, method: request.method, path, headers: request.headers,
                                         names: request.rawHeaders.filter((_, i) => i % 2 === 0),
                                         trailers: request.trailers, body: body.length}) + '\n');
  if (page === '/chunks') {  // each byte of the echo in a chunk, or a frame, of its own
    response.writeHead(200, {'x-echo': request.headers.authorization || ''});
    for (const byte of seen) response.write(byte);
    return response.end();
  }
  if (page === '/large') return response.end(Buffer.alloc(Number(query.get('size')), 'x'));
  if (page === '/sum') return response.end(crypto.createHash('sha256').update(body).digest('hex') + '\n');
  if (page === '/redirect') {
    response.writeHead(302, {location: query.get('to')});
    return response.end();
  }
  if (page === '/error') {
    response.writeHead(500, {'x-echo': request.headers.authorization || ''});
    return response.end(seen);
  }
  if (page === '/stream') {  // an answer that what comes to /push is written to
    stream = response;
    response.writeHead(200, {'content-type': 'text/event-stream'});
    return response.flushHeaders();
  }
  if (page === '/push') {
    if (body.length > 0) stream.write(body); else stream.end();
    return response.end('pushed');
  }
  response.setHeader('content-length', Buffer.byteLength(seen));
  response.end(seen);
}

function take(request, response) {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => answer(request, response, Buffer.concat(pieces)));
}

const server = key === '-' ? http.createServer(take)
    : http2.createSecureServer({key: fs.readFileSync(key), cert: fs.readFileSync(certificate), allowHTTP1: true, maxSessionMemory: 100}, take);
// A WebSocket server as far as the relay sees one: what comes after the answer comes back.
server.on('upgrade', (request, socket) => {
  fs.appendFileSync(log, JSON.stringify({version: request.httpVersion, method: 'UPGRADE', path: request.url, headers: request.headers}) + '\n');
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
  socket.pipe(socket);
});
server.listen(Number(port), address, () => console.log('ready'));
