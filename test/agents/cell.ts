import { crc32, deflateSync } from 'node:zlib';
import { type ProgramEnd, runInEmptyHome } from '../support/agents';
import { startGateway, type TestGateway } from '../support/gateway';
import { until } from '../support/until';
import type { Client, Point, Upstream } from './clients/client';
import { type Feature, NOTES } from './features';
import { startVendor, type Vendor } from './vendor/vendor';

/** A gateway and its vendor. One program uses them at a time, so that every call belongs to it. */
export interface Desk {
  readonly gateway: TestGateway;
  readonly vendor: Vendor;
  close(): Promise<void>;
}

/** The result of a client for a feature. */
export interface Cell {
  readonly client: string;
  readonly feature: string;
  readonly state: 'works' | 'fails' | 'lacks';
  /** The failures, or why the client lacks the feature. */
  readonly reasons: readonly string[];
  readonly calls: number;
  /** The costs in USD with 8 decimals: the vendor's charge and the gateway's charge. */
  readonly vendorUsd: string;
  readonly chargedUsd: string;
  readonly seconds: number;
  /** The output of the program, for failures only. */
  readonly output?: string;
}

const MODEL = {
  context: 1_000_000,
  maxOutput: 128_000,
  price: { input: 3, output: 15, cacheWrite: 3.75, cacheWrite1h: 6, cacheRead: 0.3, pieces: { webSearch: 0.01 } },
};
const FUNDS_USD = '100.00000000';
const WITHIN_MS = 90_000;
const AT_REST_MS = 20_000;
export const NOT_TRIED = { calls: 0, vendorUsd: usd(0n), chargedUsd: usd(0n), seconds: 0 } as const;
/** A key of the right form that no account has. */
const UNKNOWN_KEY = 'sk-svc-0123456789012345678901234567890123456789000000';

/** Opens a gateway and its vendor. `speaks` is the protocol of the upstream; absent: all of them. */
export async function openDesk(models: readonly string[], speaks?: Upstream): Promise<Desk> {
  const vendor = await startVendor();
  const gateway = await startGateway({
    upstreams: {
      acme: {
        url: vendor.url,
        models: Object.fromEntries(models.map((name) => [name, MODEL])),
        ...(speaks !== undefined && { adapter: speaks }),
      },
    },
  });
  return {
    gateway,
    vendor,
    close: async () => {
      await gateway.stop();
      await vendor.stop();
    },
  };
}

/** Runs a client's program for one feature, and compares its account with the vendor's charge. */
export async function tryOut(desk: Desk, client: Client, feature: Feature): Promise<Cell> {
  const named = { client: client.id, feature: feature.name };
  const lacks = client.lacks[feature.name];
  if (lacks !== undefined) return { ...named, ...NOT_TRIED, state: 'lacks', reasons: [lacks] };
  const { gateway, vendor } = desk;
  const begunMs = performance.now();
  const fundsUsd = feature.customer === 'without money' ? '0' : FUNDS_USD;
  const { key } = await gateway.newCustomer(fundsUsd);
  vendor.begin(feature.steps(client), (call) => client.isConversation(call));
  const point = { url: gateway.url, key: feature.customer === 'unknown' ? UNKNOWN_KEY : key, model: client.model };
  const end = await runClient(client, feature, point);
  const account = await accountAtRest(desk, key);
  const calls = vendor.calls.filter((call) => client.isConversation(call));
  const vendorUnits = vendor.calls.reduce((sum, { charge }) => sum + charge, 0n);
  const wrong = [
    end.code === null ? `it did not end within ${WITHIN_MS / 1_000} s` : undefined,
    ...feature.judge({ client, end, outcome: client.read(end), calls }),
    ...judgeMoney(account, unitsOf(fundsUsd), vendorUnits),
    vendor.calls.some(({ leftEarly }) => leftEarly) ? 'the gateway left a call of the vendor' : undefined,
  ];
  const reasons = wrong.filter((reason) => reason !== undefined);
  return {
    ...named,
    state: reasons.length === 0 ? 'works' : 'fails',
    reasons,
    calls: vendor.calls.length,
    vendorUsd: usd(vendorUnits),
    chargedUsd: usd(account.spent),
    seconds: Math.round((performance.now() - begunMs) / 100) / 10,
    ...(reasons.length === 0 ? {} : { output: end.output }),
  };
}

function runClient(client: Client, { name, prompt }: Feature, point: Point): Promise<ProgramEnd> {
  const setup = client.setup(point);
  const command = client.command({ feature: name, prompt, point });
  return runInEmptyHome({
    ...command,
    env: { ...setup.env, ...command.env },
    files: { ...setup.files, ...projectFiles() },
    withinMs: WITHIN_MS,
  });
}

/** An account's money in units of 1e-8 USD. */
interface Account {
  readonly balance: bigint;
  readonly held: bigint;
  readonly spent: bigint;
}

/** Returns the account once it holds nothing and the vendor has ended every answer, or its current state after a timeout. */
async function accountAtRest({ gateway, vendor }: Desk, key: string): Promise<Account> {
  const read = async () => {
    const { balanceUsd, heldUsd, key: limits } = await gateway.balance(key);
    return { balance: unitsOf(balanceUsd), held: unitsOf(heldUsd), spent: unitsOf(String(limits['spentUsd'])) };
  };
  const isAtRest = ({ held }: Account) => held === 0n && vendor.calls.every(({ ended }) => ended);
  const look = async () => {
    const account = await read();
    return isAtRest(account) ? account : undefined;
  };
  return until('the account is at rest', look, AT_REST_MS).catch(read);
}

function judgeMoney({ balance, held, spent }: Account, funds: bigint, vendor: bigint): readonly (string | undefined)[] {
  return [
    held === 0n ? undefined : `${usd(held)} is still held`,
    spent === vendor ? undefined : `the bill is ${usd(spent)}, and the vendor's ${usd(vendor)}`,
    balance + spent === funds ? undefined : `the balance is ${usd(balance)} after a bill of ${usd(spent)}`,
  ];
}

/** @param amountUsd - with 8 decimals, or 0 */
function unitsOf(amountUsd: string): bigint {
  return BigInt(amountUsd.replace('.', ''));
}

function usd(units: bigint): string {
  const digits = String(units).padStart(9, '0');
  return `${digits.slice(0, -8)}.${digits.slice(-8)}`;
}

export function projectFiles(): Readonly<Record<string, string | Buffer>> {
  const notes = Object.entries(NOTES).map(([name, text]) => [`project/${name}`, text] as const);
  return { ...Object.fromEntries(notes), 'project/image.png': redSquare(64) };
}

/** A PNG of one colour. */
function redSquare(size: number): Buffer {
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(size * 3, Buffer.from([220, 30, 30]))]);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const pixels = deflateSync(Buffer.concat(Array.from({ length: size }, () => row)));
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', pixels),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, check]);
}
