import { randomUUID } from 'node:crypto';
import { request } from 'undici';
import { ask } from '../support/calls';
import type { TestGateway } from '../support/gateway';
import type { Random } from '../support/random';
import type { Node } from './nodes';

/** What the customers were told, which from then on has to be true. */
export interface Acknowledged {
  /** Request id to the cost that the answer named, in E8. */
  readonly calls: Map<string, bigint>;
  /** Idempotency key to amount. */
  readonly credits: Map<string, bigint>;
  /** Answers by status; 0 for none. */
  readonly statuses: Map<number, number>;
}

export interface Customer {
  readonly accountId: string;
  readonly key: string;
}

export interface LoadOptions {
  readonly nodes: readonly Node[];
  readonly customers: readonly Customer[];
  readonly random: Random;
  readonly clients: number;
}

const TIMES = { headersTimeout: 8_000, bodyTimeout: 8_000 };

/** Customers that call, and top up now and then, until they are stopped. */
export function startLoad({ nodes, customers, random, clients }: LoadOptions) {
  const acknowledged: Acknowledged = { calls: new Map(), credits: new Map(), statuses: new Map() };
  let stopped = false;

  const once = async (gateway: TestGateway, { accountId, key }: Customer) => {
    if (random.below(100) === 0) return topUp(gateway, accountId);
    const stream = random.below(3) === 0;
    const response = await request(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': key },
      body: JSON.stringify(ask({ stream })),
      ...TIMES,
    });
    const text = await response.body.text();
    count(response.statusCode);
    const cost = response.statusCode !== 200 ? undefined : stream ? costInStream(text) : response.headers['x-ai-cost'];
    if (cost !== undefined) acknowledged.calls.set(String(response.headers['x-svc-request-id']), toE8(String(cost)));
  };

  /** Repeated with the same idempotency key until somebody says that it is done, as the documents tell. */
  const topUp = async (gateway: TestGateway, accountId: string) => {
    const idempotencyKey = randomUUID();
    const amountUsd = `0.0${1 + random.below(9)}`;
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const answer = await gateway
        .admin('POST', `/admin/v1/accounts/${accountId}/credits`, { amountUsd, idempotencyKey })
        .catch(() => undefined);
      if (answer?.status === 200 || answer?.status === 201) {
        acknowledged.credits.set(idempotencyKey, toE8(amountUsd));
        return;
      }
      await new Promise((wake) => setTimeout(wake, 200));
    }
  };

  const count = (status: number) => acknowledged.statuses.set(status, (acknowledged.statuses.get(status) ?? 0) + 1);
  const client = async () => {
    while (!stopped) {
      const gateway = random.pick(nodes).current();
      await (gateway === undefined ? Promise.reject() : once(gateway, random.pick(customers))).catch(() => count(0));
      await new Promise((wake) => setTimeout(wake, random.below(60)));
    }
  };
  const working = Array.from({ length: clients }, client);
  return {
    acknowledged,
    stop: async () => {
      stopped = true;
      await Promise.all(working);
    },
  };
}

/** What the event with the final usage says, when the stream came to its end. */
function costInStream(text: string): string | undefined {
  if (!text.includes('event: message_stop')) return undefined;
  return /"cost":\s*"?([\d.]+)/.exec(text)?.[1];
}

function toE8(usd: string): bigint {
  const [whole = '0', fraction = ''] = usd.split('.');
  return BigInt(whole + fraction.padEnd(8, '0'));
}
