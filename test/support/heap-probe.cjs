/**
 * Preloaded into a gateway whose memory is watched: on SIGUSR2 it collects garbage and prints what is still held, which no
 * caller from outside can see.
 */
const { channel } = require('node:diagnostics_channel');
const v8 = require('node:v8');
const vm = require('node:vm');

const servers = new Set();
channel('http.server.request.start').subscribe(({ server }) => servers.add(server));

v8.setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc');

process.on('SIGUSR2', () => {
  // The first one finds what is garbage; only the next gives back what its buffers held outside the heap.
  collect();
  collect();
  const apps = [...servers].flatMap((server) => server.listeners('request')).filter(({ _router }) => _router);
  const { heapUsed, external } = process.memoryUsage();
  const held = {
    heapBytes: heapUsed,
    bufferBytes: external,
    handles: process.getActiveResourcesInfo().length,
    routes: apps.reduce((sum, { _router }) => sum + _router.stack.length, 0),
  };
  process.stdout.write(`HELD ${JSON.stringify(held)}\n`);
});
