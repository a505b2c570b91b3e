import type { Logger } from 'pino';
import { newId } from '../base/ids';
import { asObject } from '../base/json-values';
import { parseJson } from '../base/parse-json';
import type { Stop } from '../base/resources';
import { duplicateRedis, type RedisClient } from '../storage/redis';
import type { HealthEvent, UpstreamHealth } from './health';
import type { Observed } from './tally';

/** The name of the Redis channel. It contains the version of `Message`, because only nodes with the same version understand each other. */
const CHANNEL = 'tollgate:upstream-health:1';

/** How long a node collects observations before it publishes them together. It publishes events such as ejections at once. */
const PUBLISH_AFTER_MS = 250;

/** Options of the Redis connections through which nodes exchange health. No call waits for them, so they may wait longer for a busy Redis. */
const PATIENT = { enableOfflineQueue: false, commandTimeout: 5_000, socketTimeout: 10_000 };

interface Message {
  readonly node: string;
  readonly events?: readonly HealthEvent[];
  readonly observed?: readonly Observed[];
  /** Requests from the other nodes the ejections and rests in force, because this node has just started or was disconnected. */
  readonly asks?: true;
}

interface ExchangeOptions {
  /** A Redis connection that the exchange duplicates. The exchange uses only its duplicates, because a call must not wait behind its commands. */
  readonly redis: RedisClient;
  readonly health: UpstreamHealth;
  readonly log: Logger;
}

/**
 * Publishes what each node observes of the upstreams to the other nodes through Redis. Nothing is stored, and no call waits for it. While
 * Redis is unreachable, each node decides by its own observations. Afterwards it requests the ejected upstreams from the other nodes.
 */
export function startHealthExchange({ redis, health, log }: ExchangeOptions): Stop {
  const node = newId();
  const speaking = duplicateRedis(redis, PATIENT);
  const listening = duplicateRedis(redis, { ...PATIENT, autoResubscribe: false });
  for (const each of [speaking, listening]) each.on('error', () => undefined); // The ledger's connection reports it.

  const publish = (message: Omit<Message, 'node'>): void => {
    if (speaking.status !== 'ready') return;
    speaking.publish(CHANNEL, JSON.stringify({ node, ...message })).catch((error: Error) => {
      log.debug(
        { reason: error.message },
        'cannot publish the health of upstreams to other nodes over Redis; each node uses only its own observations',
      );
    });
  };

  const take = (text: string): void => {
    const message = asObject(parseJson(text)) as Message | undefined;
    if (message === undefined || message.node === node) return;
    for (const each of message.events ?? []) health.apply(each);
    for (const each of message.observed ?? []) health.applyObserved(each);
    const standing = message.asks === true ? health.standing() : [];
    if (standing.length > 0) publish({ events: standing });
  };
  listening.on('message', (_channel, text) => {
    try {
      take(text);
    } catch (error) {
      log.debug({ reason: String(error) }, 'received an invalid message about the health of upstreams; it is ignored');
    }
  });
  // Requests the other nodes' ejections and publishes this node's. It does both, because a node that reconnects at the same time misses the request.
  const greet = (): void => publish({ asks: true, events: health.standing() });
  const begin = (): void => {
    listening.subscribe(CHANNEL).then(greet, () => undefined);
  };
  listening.on('ready', begin);
  // Repeats the exchange of events when the publishing connection is ready, because nothing could be published before.
  speaking.on('ready', greet);

  health.onEvent((event) => publish({ events: [event] }));
  let timer: NodeJS.Timeout | undefined;
  health.onObserved(() => {
    timer = setTimeout(() => publish({ observed: health.takeObserved() }), PUBLISH_AFTER_MS).unref();
  });

  return async () => {
    health.onObserved(() => undefined);
    clearTimeout(timer);
    health.onEvent(() => undefined);
    speaking.disconnect();
    listening.disconnect();
  };
}
