import { connect } from 'node:net';

/** Sends bytes unchanged and returns all that arrives until the connection closes. */
export function rawRequest(url: string, bytes: string | Buffer, withinMs = 20_000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes));
    let text = '';
    socket.setTimeout(withinMs, () => socket.destroy(new Error(`nothing more within ${withinMs} ms after: ${text}`)));
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
}

/** Sends one POST with these headers on a separate connection. */
export function rawPost(url: string, target: string, headers: readonly string[], body: string): Promise<string> {
  const head = [
    `POST ${target} HTTP/1.1`,
    ...headers,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  return rawRequest(url, `${head.join('\r\n')}\r\n\r\n${body}`);
}

/** Returns the status of a raw answer. */
export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1] ?? 0);
}
