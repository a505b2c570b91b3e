import { randomUUID } from 'node:crypto';
import { Agent, type Dispatcher, request } from 'undici';
import { ask } from '../support/calls';
import { MODEL, type TestGateway } from '../support/gateway';
import type { Random } from '../support/random';
import { pause } from './faults';
import type { Node } from './nodes';
import { QUICK } from './upstream';

/** What the customers were told, which from then on has to be true. */
export interface Acknowledged {
  /** Request id to the cost that the answer named, in E8. */
  readonly calls: Map<string, bigint>;
  /** Idempotency key to amount. */
  readonly credits: Map<string, bigint>;
  /** Answers by status and code of the error. */
  readonly answers: Map<string, number>;
}

export interface Customer {
  readonly accountId: string;
  readonly key: string;
  /** One that calls so much that nodes take money of it in advance. */
  readonly isHot: boolean;
}

export interface LoadOptions {
  readonly nodes: readonly Node[];
  readonly customers: readonly Customer[];
  readonly random: Random;
  /** How many call at once. */
  readonly clients: number;
  /** How long a client of a customer that calls much waits between two calls; not at all without it. */
  readonly hotPauseMs?: number;
}

/** A busy machine is waited for. */
const TIMES = { headersTimeout: 30_000, bodyTimeout: 30_000 };
/** Of all that call at once, those that call for customers that are used much. */
const HOT_SHARE = 0.75;
const CALLERS_OF_A_GROUP = 9;
const CALLS_OF_A_STAY = 1_000;
const COLD_PAUSE_MS = 60;
/** As Retry-After says of 503. */
const UNAVAILABLE_PAUSE_MS = 1_000;

/** Customers that call, and top up now and then, until they are stopped. */
export function startLoad({ nodes, customers, random, clients, hotPauseMs = 0 }: LoadOptions) {
  const acknowledged: Acknowledged = { calls: new Map(), credits: new Map(), answers: new Map() };
  let stopped = false;

  /** Returns the status of the answer to a call. */
  const once = async (gateway: TestGateway, { accountId, key, isHot }: Customer, dispatcher?: Dispatcher) => {
    if (random.below(100) === 0) await topUp(gateway, accountId);
    const stream = random.below(3) === 0;
    const response = await request(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': key },
      body: JSON.stringify(ask({ stream, model: isHot ? QUICK : MODEL })),
      ...(dispatcher !== undefined && { dispatcher }),
      ...TIMES,
    });
    const text = await response.body.text();
    count(response.statusCode === 200 ? '200' : `${response.statusCode} ${/"code":\s*"(\w+)/.exec(text)?.[1]}`);
    const cost = response.statusCode !== 200 ? undefined : stream ? costInStream(text) : response.headers['x-ai-cost'];
    if (cost !== undefined) acknowledged.calls.set(String(response.headers['x-svc-request-id']), toE8(String(cost)));
    if (response.statusCode === 503) await pause(UNAVAILABLE_PAUSE_MS);
    return response.statusCode;
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
      await pause(200);
    }
  };

  const count = (answer: string) => acknowledged.answers.set(answer, (acknowledged.answers.get(answer) ?? 0) + 1);
  /** Returns whether a call was served. */
  const attempt = async (node: Node, customer: Customer, dispatcher?: Dispatcher): Promise<boolean> => {
    const gateway = node.current();
    if (gateway === undefined) return false;
    try {
      return (await once(gateway, customer, dispatcher)) === 200;
    } catch {
      count('lost');
      return false;
    }
  };
  const cold = async () => {
    while (!stopped) {
      await attempt(random.pick(nodes), random.pick(coldOnes));
      await pause(random.below(COLD_PAUSE_MS));
    }
  };
  /** Callers who stay together at one node for one customer, so that it is used much there, until one of them is not served. */
  const hot = async () => {
    while (!stopped) {
      const [node, customer] = [random.pick(nodes), random.pick(hotOnes)];
      let left = CALLS_OF_A_STAY;
      const caller = async () => {
        const connection = new Agent({ connections: 1 });
        for (; left > 0 && !stopped; left -= 1) {
          if (!(await attempt(node, customer, connection))) left = 0;
          if (hotPauseMs > 0) await pause(hotPauseMs);
        }
        await connection.destroy();
      };
      await Promise.all(Array.from({ length: CALLERS_OF_A_GROUP }, caller));
      await pause(random.below(COLD_PAUSE_MS));
    }
  };
  const coldOnes = customers.filter(({ isHot }) => !isHot);
  const hotOnes = customers.filter(({ isHot }) => isHot);
  const groups = hotOnes.length > 0 ? Math.floor((HOT_SHARE * clients) / CALLERS_OF_A_GROUP) : 0;
  const working = [
    ...Array.from({ length: groups }, hot),
    ...Array.from({ length: clients - groups * CALLERS_OF_A_GROUP }, cold),
  ];
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
