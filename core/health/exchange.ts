import type { Logger } from 'pino';
import { newId } from '../base/ids';
import { asObject } from '../base/json-values';
import { parseJson } from '../base/parse-json';
import type { Stop } from '../base/resources';
import { duplicateRedis, type RedisClient } from '../storage/redis';
import type { HealthEvent, UpstreamHealth } from './health';
import type { Observed } from './tally';

/** Only nodes of one version of `Message` share a channel. */
const CHANNEL = 'tollgate:upstream-health:1';

/** How long observations are collected before they are published together. Events such as ejections are published at once. */
const PUBLISH_AFTER_MS = 250;

/** Options of the exchange's connections. No call waits for them, so they may wait longer for a busy Redis. */
const PATIENT = { enableOfflineQueue: false, commandTimeout: 5_000, socketTimeout: 10_000 };

interface Message {
  readonly node: string;
  readonly events?: readonly HealthEvent[];
  readonly observed?: readonly Observed[];
  /** Asks the other nodes for the events in force, because this node has just started or was disconnected. */
  readonly asks?: true;
}

interface ExchangeOptions {
  /** Only duplicated: the exchange opens its own connections, because a call must not wait behind it. */
  readonly redis: RedisClient;
  readonly health: UpstreamHealth;
  readonly log: Logger;
}

/**
 * Publishes what each node sees of the upstreams to the others, over Redis. Nothing is stored, and no call waits for it. While
 * Redis is unreachable, each node decides by what it sees itself; afterwards it asks the others which upstreams are ejected.
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
        'cannot publish the health of upstreams to other nodes; each node decides by what it sees itself',
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
      log.debug({ reason: String(error) }, 'a message about the health of upstreams has another form than nodes send');
    }
  });
  // Asks and also publishes: if two nodes reconnect together, the second one misses the question of the first.
  const greet = (): void => publish({ asks: true, events: health.standing() });
  const begin = (): void => {
    listening.subscribe(CHANNEL).then(greet, () => undefined);
  };
  listening.on('ready', begin);
  // Greets again, because a greeting is not sent before this connection is ready.
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
