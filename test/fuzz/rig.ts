import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Canary, startCanary } from '../support/canary';
import { freePort } from '../support/free-port';
import { MODEL, startGateway, type TestEndpoint, type TestGateway } from '../support/gateway';
import { createSandbox, creation, NODE_INSIDE, OPEN_SANDBOX_GATEWAY, waitForState } from '../support/sandboxes';
import { until } from '../support/until';

/** Shared parts of the targets: a gateway with an upstream and a sandbox that answer with given bytes. */
export interface Rig {
  readonly gateway: TestGateway;
  readonly key: string;
  readonly sandboxId: string;
  /** Sets the pieces of the upstream's next answer, after the valid head of a stream. */
  answerNextWith(pieces: readonly Buffer[]): void;
  /** A port of the sandbox whose server answers with the base64 of the header `x-answer`, byte for byte. */
  readonly port: RigPort;
  /** Nothing may ever reach it. */
  readonly canary: Canary;
  close(): Promise<void>;
}

export interface RigPort {
  /** The path of the port at the gateway's own host. */
  readonly url: string;
  /** The host of the port. */
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The resources of a process, according to the operating system and its own metrics. */
export interface Vitals {
  readonly rssMiB: number;
  readonly descriptors: number;
  /** How many timers were late by at most `maxMs`, in ascending order of `maxMs`. */
  readonly lags: readonly { readonly maxMs: number; readonly timers: number }[];
  /** How long the main thread has waited for a core since its start, because a busy machine must not look like a blocked event loop. */
  readonly waitedMs: number;
}

/** @param more upstreams beside the one that answers with given bytes */
export async function openRig(more: Readonly<Record<string, TestEndpoint>> = {}): Promise<Rig> {
  const upstream = await startRawUpstream();
  const gateway = await startGateway({
    ...OPEN_SANDBOX_GATEWAY,
    upstreams: { raw: { url: upstream.url, timeouts: { connect: '1s', headers: '2s', idle: '1s' } }, ...more },
    env: { SANDBOX_DOMAIN: DOMAIN },
  });
  const { key } = await gateway.newCustomer('100');
  const [sandboxId, port] = await openPort(gateway, key);
  const canary = await startCanary();
  return {
    gateway,
    key,
    sandboxId,
    answerNextWith: upstream.answerNextWith,
    port,
    canary,
    close: async () => {
      await gateway.call(`/v1/sandboxes/${sandboxId}/terminate`, { key }).catch(() => undefined);
      await gateway.stop();
      await canary.stop();
      upstream.server.closeAllConnections();
      upstream.server.close();
    },
  };
}

const DOMAIN = 'boxes.test';

/** Creates a sandbox and starts the server of bytes in it. Returns the sandbox's id and the server's port. */
async function openPort(gateway: TestGateway, key: string): Promise<[id: string, port: RigPort]> {
  const { id } = await createSandbox(gateway, key, creation('fuzz'));
  await waitForState(gateway, key, id, 'RUNNING');
  const portInside = await freePort();
  const command = `exec "${NODE_INSIDE}" -e '${byteServer(portInside)}'`;
  await gateway.call(`/v1/sandboxes/${id}/commands`, { key, body: { command, background: true } });
  const path = `/v1/sandboxes/${id}/ports/${portInside}`;
  const { headers } = (await gateway.call(path, { method: 'GET', key })).json;
  const port = { url: `${path}/proxy/`, host: `${portInside}-${id}.${DOMAIN}`, headers };
  await until(
    'the server in the sandbox answers',
    async () => {
      const shown = { ...headers, 'x-answer': Buffer.from(GOOD_ANSWER).toString('base64') };
      return (await gateway.call(port.url, { method: 'GET', headers: shown })).status === 200;
    },
    30_000,
  );
  return [id, port];
}

export const GOOD_ANSWER = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello';

/** Returns the server as one line without single quotes, because it stands in a shell command. */
function byteServer(port: number): string {
  return [
    'require("net").createServer((socket) => { let head = ""; socket.on("error", () => {}); socket.on("data", (chunk) => { head += chunk;',
    'const told = /x-answer: ([A-Za-z0-9+\\/=]*)/i.exec(head);',
    'if (told && head.includes("\\r\\n\\r\\n")) socket.end(Buffer.from(told[1], "base64")); }); })',
    `.listen(${port}, "127.0.0.1")`,
  ].join(' ');
}

async function startRawUpstream() {
  let next: readonly Buffer[] = [];
  const server: Server = createServer((request, response) => {
    request.resume();
    response.on('error', () => undefined);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const piece of next) response.write(piece);
    response.end();
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    server,
    url: `http://127.0.0.1:${port}`,
    answerNextWith: (pieces: readonly Buffer[]) => {
      next = pieces.filter(({ length }) => length > 0);
    },
  };
}

export async function vitalsOf({ pid, adminUrl, adminToken }: TestGateway): Promise<Vitals> {
  const answer = await fetch(`${adminUrl}/metrics`, { headers: { authorization: `Bearer ${adminToken}` } });
  const lags = (await answer.text()).matchAll(
    /^tollgate_event_loop_lag_seconds_bucket\{le="([\d.]+|\+Inf)"\} (\d+)$/gm,
  );
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return {
    rssMiB: Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1_024),
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    lags: [...lags].map(([, seconds, timers]) => ({
      maxMs: seconds === '+Inf' ? Number.POSITIVE_INFINITY : Number(seconds) * 1_000,
      timers: Number(timers),
    })),
    waitedMs: Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6,
  };
}

/** Returns the lower bound of the longest block between two measurements, without waits for a core. */
export function ownLag(before: Vitals, after: Vitals): number {
  const sinceBefore = after.lags.map(({ maxMs, timers }, at) => ({
    maxMs,
    timers: timers - (before.lags[at]?.timers ?? 0),
  }));
  // The counts are cumulative: where one is below the total, at least one timer was later.
  const all = sinceBefore.at(-1)?.timers ?? 0;
  const lagMs = sinceBefore.findLast(({ timers }) => timers < all)?.maxMs ?? 0;
  return Math.max(0, Math.round(lagMs - (after.waitedMs - before.waitedMs)));
}

/** Describes what the verification of the ledger finds. */
export async function ledgerFault({ admin }: TestGateway): Promise<string | undefined> {
  const { status, json, text } = await admin('GET', '/admin/v1/ledger/verify');
  return status === 200 && json.items.length === 0 ? undefined : text.slice(0, 1_000);
}

export { MODEL };
