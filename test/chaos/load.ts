import { randomUUID } from 'node:crypto';
import { Agent, type Dispatcher, request } from 'undici';
import { ask } from '../support/calls';
import { MODEL, type TestGateway } from '../support/gateway';
import type { Random } from '../support/random';
import { pause } from './faults';
import type { Node } from './nodes';
import { QUICK } from './upstream';

/** What the customers were told, which must be true from then on. */
export interface Acknowledged {
  /** The cost that the answer stated, in E8, by request id. */
  readonly calls: Map<string, bigint>;
  /** The amount of each credit, by idempotency key. */
  readonly credits: Map<string, bigint>;
  /** The number of answers, by status and error code. */
  readonly answers: Map<string, number>;
}

export interface Customer {
  readonly accountId: string;
  readonly keyId: string;
  readonly key: string;
  /** Whether the customer calls so much that nodes hold allowances for it. */
  readonly isHot: boolean;
}

export interface LoadOptions {
  readonly nodes: readonly Node[];
  readonly customers: readonly Customer[];
  readonly random: Random;
  /** The number of simultaneous clients. */
  readonly clients: number;
  /** The pause between two calls of a busy customer's client. Default: none. */
  readonly hotPauseMs?: number;
}

/** Long timeouts for a busy machine. */
const TIMES = { headersTimeout: 30_000, bodyTimeout: 30_000 };
/** The share of the clients that call for busy customers. */
const HOT_SHARE = 0.75;
const CALLERS_OF_A_GROUP = 9;
const CALLS_OF_A_STAY = 1_000;
const COLD_PAUSE_MS = 60;
/** The values of the tag `customer`, and one in how many calls of a busy customer has it. Nodes pay no such call in advance. */
const TAG_VALUES = 5;
const HOT_TAGGED = 20;
/** The pause after a 503, as its Retry-After says. */
const UNAVAILABLE_PAUSE_MS = 1_000;

/** Runs customers that call, and top up now and then, until they are stopped. */
export function startLoad({ nodes, customers, random, clients, hotPauseMs = 0 }: LoadOptions) {
  const acknowledged: Acknowledged = { calls: new Map(), credits: new Map(), answers: new Map() };
  let stopped = false;

  /** Makes a call and returns the status of the answer. */
  const once = async (gateway: TestGateway, { accountId, key, isHot }: Customer, dispatcher?: Dispatcher) => {
    if (random.below(100) === 0) await topUp(gateway, accountId);
    const stream = random.below(3) === 0;
    const isTagged = !isHot || random.below(HOT_TAGGED) === 0;
    const response = await request(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': key,
        ...(isTagged && { 'x-svc-tags': `project=chaos, customer=${random.below(TAG_VALUES)}` }),
      },
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

  /** Adds a credit, repeated with the same idempotency key until it is confirmed, as the documents advise. */
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
  /** Makes a call and returns whether it was served. */
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
  /** Runs clients that stay at one node for one customer, so that it is busy there, until a call fails. */
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

/** Returns the cost in the event with the final usage, if the stream is complete. */
function costInStream(text: string): string | undefined {
  if (!text.includes('event: message_stop')) return undefined;
  return /"cost":\s*"?([\d.]+)/.exec(text)?.[1];
}

function toE8(usd: string): bigint {
  const [whole = '0', fraction = ''] = usd.split('.');
  return BigInt(whole + fraction.padEnd(8, '0'));
}
