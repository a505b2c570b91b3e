import { createServer } from 'node:net';

/** Returns one sentence for each port in use, with the variable that changes it. */
export async function takenPorts(ports) {
  const sentences = [];
  const seen = new Map();
  for (const [name, port] of Object.entries(ports)) {
    if (seen.has(port)) sentences.push(`${name} and ${seen.get(port)} are both ${port}; give them different numbers.`);
    else if (!(await isFree(Number(port)))) {
      sentences.push(
        `Port ${port} is taken. Set ${name} to another one: ${name}=${Number(port) + 100} npm run quickstart`,
      );
    }
    seen.set(port, name);
  }
  return sentences;
}

function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
