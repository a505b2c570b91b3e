import { strict as assert } from 'node:assert';
import { request } from 'undici';
import { offeringId } from '../../plugins/sandbox/offerings/offering';
import type { Answered, GatewayOptions, TestGateway } from './gateway';
import { until } from './until';

/**
 * Settings of a gateway with the supplier of this machine and one offering at USD 3.6 an hour, which is 1,000 units of 1e-8 USD a hundredth of a
 * second.
 */
export const SANDBOX_GATEWAY = {
  upstreams: { none: { url: 'http://127.0.0.1:9' } },
  plugins: { sandbox: { suppliers: { local: { driver: 'process' } }, allowUnisolated: true } },
  configure: (config: Record<string, unknown>) => {
    config['offerings'] = { small: SMALL };
  },
} satisfies Pick<GatewayOptions, 'upstreams' | 'plugins' | 'configure'>;

/** The same, with commands in the network of this machine: only then does this driver have ports. */
export const OPEN_SANDBOX_GATEWAY = {
  ...SANDBOX_GATEWAY,
  plugins: { sandbox: { suppliers: { local: { driver: 'process', isolation: 'none' } }, allowUnisolated: true } },
} satisfies Pick<GatewayOptions, 'upstreams' | 'plugins' | 'configure'>;

export const SMALL = {
  supplier: 'local',
  resources: { cpu: 1, memoryGiB: 1 },
  suspension: 'memory',
  resumeOnAccess: true,
  hourlyUsd: { RUNNING: 3.6, SUSPENDED: 0.36 },
};

export const SMALL_ID = offeringId('small');

export function creation(idempotencyKey: string, more: object = {}) {
  return { selection: { offeringId: SMALL_ID }, idempotencyKey, ...more };
}

// biome-ignore lint/suspicious/noExplicitAny: tests look at any member
export type AnyRecord = any;

export async function createSandbox(gateway: TestGateway, key: string, body: object): Promise<AnyRecord> {
  const answer = await gateway.call('/v1/sandboxes', { key, body });
  assert.equal(answer.status, 202, answer.text);
  return answer.json;
}

export async function waitForState(gateway: TestGateway, key: string, id: string, states: string): Promise<AnyRecord> {
  return until(
    `${id} is ${states}`,
    async () => {
      const answer = await gateway.call(`/v1/sandboxes/${id}?waitFor=${states}&waitSeconds=5`, { method: 'GET', key });
      return states.split(',').includes(answer.json.observedState) ? answer.json : undefined;
    },
    40_000,
  );
}

export async function terminate(gateway: TestGateway, key: string, id: string): Promise<AnyRecord> {
  const answer = await gateway.call(`/v1/sandboxes/${id}/terminate`, { key });
  assert.ok(answer.status === 202 || answer.status === 200, answer.text);
  return waitForState(gateway, key, id, 'TERMINATED,FAILED');
}

/** Makes a sandbox, and returns its record once it runs. */
export async function running(gateway: TestGateway, key: string, name: string, more: object = {}): Promise<AnyRecord> {
  const { id } = await createSandbox(gateway, key, creation(name, more));
  return waitForState(gateway, key, id, 'RUNNING');
}

export function assertRefused({ status, json, text }: Answered, wanted: number, code: string, what = ''): void {
  assert.deepEqual([status, json?.error?.code], [wanted, code], `${what} ${text}`);
}

export type RunningSandbox = Awaited<ReturnType<typeof runningSandbox>>;

/** Makes a customer with a running sandbox, and returns functions that ask for something inside it. */
export async function runningSandbox(gateway: TestGateway, name = 'one') {
  const { key, accountId } = await gateway.newCustomer('5');
  const { id } = await running(gateway, key, name);
  const base = `/v1/sandboxes/${id}`;
  const get = (path: string, headers = {}) => gateway.call(`${base}${path}`, { method: 'GET', key, headers });
  const post = (path: string, body: unknown, headers = {}) => gateway.call(`${base}${path}`, { key, body, headers });
  const run = (command: string, more: object = {}) => post('/commands', { command, ...more });
  return { key, accountId, id, base, get, post, run, end: () => terminate(gateway, key, id) };
}

/** Runs a program of Node in a sandbox, and returns where its port is opened, once it answers there with 200 at `path`. */
export async function serve({ get, post, run }: RunningSandbox, port: number, program: string, path = '') {
  await post('/files', { path: 'server.js', content: program });
  await run(`exec "${NODE_INSIDE}" server.js`, { background: true });
  const opened: { url: string; headers: Record<string, string> } = (await get(`/ports/${port}`)).json;
  await until('the server is up', async () => {
    const { statusCode, body } = await request(opened.url + path, { headers: opened.headers });
    await body.dump();
    return statusCode === 200;
  });
  return opened;
}

/** Asserts what docs/contract.md, section 8.2, promises of a sandbox that has ended. */
export function assertBooksAreClosed(record: AnyRecord): void {
  const text = JSON.stringify(record, null, 2);
  assert.ok(['TERMINATED', 'FAILED'].includes(record.observedState), text);
  assert.equal(record.desiredState, null, text);
  assert.equal(record.reservedUntil, null, text);
  for (const segment of record.usageSegments) assert.ok(segment.status === 'SETTLED' && segment.endsAt !== null, text);
  for (const period of record.billingPeriods) assert.ok(period.status === 'SETTLED' && period.endedAt !== null, text);
  const sum = (rows: { amount: string }[]) => rows.reduce((total, { amount }) => total + units(amount), 0n);
  assert.equal(units(record.totalCost), sum(record.billingPeriods), text);
  assert.equal(units(record.totalCost), sum(record.usageSegments), text);
  assert.equal(record.observedState === 'TERMINATED', record.terminatedAt !== null, text);
}

/** Converts a decimal amount to units of 1e-8 USD. */
export function units(usd: string): bigint {
  return BigInt(usd.replace('.', ''));
}

/** A Node that instances can run: they see the system's programs, and not a newer Node that was installed for the tests. */
export const NODE_INSIDE = process.execPath.startsWith('/usr/') ? process.execPath : 'node';
