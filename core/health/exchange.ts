import type { Logger } from 'pino';
import { newId } from '../ids';
import { parseJson } from '../parse-json';
import type { Stop } from '../resources';
import { compileCheck } from '../settings';
import { duplicateRedis, type RedisClient } from '../storage/redis';
import type { HealthNews, UpstreamHealth } from './health';
import type { Observed } from './tally';

const CHANNEL = 'tollgate:upstream-health';

/** Observations of this time go out together; what concerns all at once, an ejection for example, is told at once. */
const TELL_EVERY_MS = 250;

/** Nobody waits for these connections: a Redis that is busy for a moment is no reason to lose them. */
const PATIENT = { enableOfflineQueue: false, commandTimeout: 5_000, socketTimeout: 10_000 };

interface Message {
  readonly node: string;
  readonly news?: readonly HealthNews[];
  readonly observed?: readonly Observed[];
  /** A node has just begun, or is back, and knows nothing. */
  readonly asks?: true;
}

export interface HealthExchangeOptions {
  /** Only copied: the exchange has connections of its own, so that no call waits behind it. */
  readonly redis: RedisClient;
  readonly health: UpstreamHealth;
  readonly log: Logger;
}

/**
 * Nodes tell each other what they see of the upstreams, by Redis' publish and subscribe: nothing is stored, nothing is asked on
 * a call's path. While Redis is away each node decides by what it sees itself; when it is back they ask the others who is out.
 */
export function startHealthExchange({ redis, health, log }: HealthExchangeOptions): Stop {
  const node = newId();
  const speaking = duplicateRedis(redis, PATIENT);
  const listening = duplicateRedis(redis, { ...PATIENT, autoResubscribe: false });
  for (const each of [speaking, listening]) each.on('error', () => undefined); // The ledger's connection reports it.

  const tell = (message: Omit<Message, 'node'>): void => {
    if (speaking.status !== 'ready') return;
    speaking.publish(CHANNEL, JSON.stringify({ node, ...message })).catch((error: Error) => {
      log.debug({ reason: error.message }, 'other nodes could not be told of the upstreams');
    });
  };

  listening.on('message', (_channel, text) => {
    const message = read(text);
    if (message === undefined || message.node === node) return;
    for (const each of message.news ?? []) health.hear(each);
    for (const each of message.observed ?? []) health.hearObserved(each);
    const standing = message.asks === true ? health.standing() : [];
    if (standing.length > 0) tell({ news: standing });
  });
  // Asks and tells: of two nodes that come back together, the one that asks first is not heard by the other.
  const greet = (): void => tell({ asks: true, news: health.standing() });
  const begin = (): void => {
    listening.subscribe(CHANNEL).then(greet, () => undefined);
  };
  listening.on('ready', begin);
  // Whichever of the two connections is there last greets.
  speaking.on('ready', greet);

  health.onNews((news) => tell({ news: [news] }));
  const timer = setInterval(() => {
    const observed = health.takeObserved();
    if (observed.length > 0) tell({ observed });
  }, TELL_EVERY_MS);
  timer.unref();

  return async () => {
    clearInterval(timer);
    health.onNews(() => undefined);
    speaking.disconnect();
    listening.disconnect();
  };
}

const TEXT = { type: 'string' } as const;
const COUNT = { type: 'number', minimum: 0 } as const;
const FLAG = { type: 'boolean' } as const;

const checkMessage = compileCheck<Message>({
  type: 'object',
  required: ['node'],
  properties: {
    node: TEXT,
    asks: FLAG,
    news: {
      type: 'array',
      items: {
        type: 'object',
        required: ['upstream', 'is'],
        properties: {
          upstream: TEXT,
          is: TEXT,
          forMs: { ...COUNT, default: 0 },
          credential: { ...TEXT, default: '' },
          status: { ...COUNT, default: 0 },
        },
      },
    },
    observed: {
      type: 'array',
      items: {
        type: 'object',
        required: ['upstream', 'answered', 'failed', 'latencies'],
        properties: {
          upstream: TEXT,
          answered: COUNT,
          failed: COUNT,
          latencies: {
            type: 'array',
            items: {
              type: 'object',
              required: ['model', 'stream', 'times', 'totalMs'],
              properties: { model: TEXT, stream: FLAG, times: COUNT, totalMs: COUNT },
            },
          },
        },
      },
    },
  },
});

/** What a node of another version may say is not understood and does no harm. */
function read(text: string): Message | undefined {
  const checked = checkMessage(parseJson(text));
  return 'value' in checked ? checked.value : undefined;
}
