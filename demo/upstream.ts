import { demoServer } from './demo-server';

/**
 * The demo upstream as a program: `node dist/demo/upstream.js`. It listens only on loopback, at DEMO_PORT (8089), and answers
 * clients that send DEMO_UPSTREAM_KEY. After SIGTERM or SIGINT it finishes the running answers and exits.
 */
const port = Number(process.env['DEMO_PORT'] ?? 8089);
const key = process.env['DEMO_UPSTREAM_KEY'] ?? '';

const EXIT_CONFIGURATION = 78;

if (key === '') {
  process.stderr.write('The demo upstream needs DEMO_UPSTREAM_KEY: the credential that the gateway shows it.\n');
  process.exit(EXIT_CONFIGURATION);
}

const server = demoServer(key);
server.once('error', (error: NodeJS.ErrnoException) => {
  const reason = error.code === 'EADDRINUSE' ? `port ${port} is taken; set DEMO_PORT to another` : error.message;
  process.stderr.write(`The demo upstream cannot listen: ${reason}\n`);
  process.exit(EXIT_CONFIGURATION);
});
server.listen(port, '127.0.0.1', () => {
  process.stdout.write(`The demo upstream listens at http://127.0.0.1:${port}; there is no real model behind it.\n`);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => server.close());
