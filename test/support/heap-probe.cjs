/**
 * Runs inside a gateway whose memory a test measures: on SIGUSR2 it collects garbage and prints the memory in use, which is not visible from outside.
 */
const { channel } = require('node:diagnostics_channel');
const v8 = require('node:v8');
const vm = require('node:vm');

const servers = new Set();
channel('http.server.request.start').subscribe(({ server }) => servers.add(server));

v8.setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc');

process.on('SIGUSR2', () => {
  // The first collection finds garbage; the second one frees the memory that its buffers held outside the heap.
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
