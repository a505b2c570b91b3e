import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { openRig, type Rig } from '../fuzz/rig';
import type { TestEndpoint } from '../support/gateway';
import type { Random } from '../support/random';
import { messagesAsAsked, responsesAnswer, startUpstream } from '../support/upstream';
import { startWildUpstream } from './wild-upstream';

/** A gateway with honest and hostile customers. The rig's own upstream and sandbox belong to the hostile ones. */
export interface Scene extends Rig {
  /** The keys of customers with money, with little and without. */
  readonly rich: string;
  readonly penniless: string;
  /** Opens a connection from another address than that of the honest customers. */
  connect(): Promise<Socket>;
}

/** The model of a healthy upstream, which honest customers call. */
export const HONEST_MODEL = 'honest-large';
/** The model of an upstream that answers each call with another fault. */
export const WILD_MODEL = 'wild-large';

/** The model of an upstream whose answers have 16 MB, and the id of the response that each of them has. */
export const LARGE_MODEL = 'large-large';
export const LARGE_ID = 'resp_large';
const LARGE_TEXT = 'x'.repeat(16 * 1_048_576);

const HOSTILE_ADDRESS = '127.0.0.2';

export async function openScene(random: Random): Promise<Scene> {
  const [honest, large, wild] = [await startUpstream(), await startUpstream(), await startWildUpstream(random)];
  honest.always(messagesAsAsked());
  large.always(responsesAnswer({ id: LARGE_ID, texts: [LARGE_TEXT] }));
  // Empties the upstream's record of calls, which would grow for a quarter of an hour.
  const forgetting = setInterval(() => {
    for (const { calls } of [honest, large]) (calls as unknown[]).splice(0);
  }, 10_000);
  const timeouts = { connect: '1s', headers: '2s', idle: '2s' };
  const upstreams: Record<string, TestEndpoint> = {
    honest: { url: honest.url, adapter: 'messages', models: { [HONEST_MODEL]: {} } },
    large: { url: large.url, adapter: 'responses', models: { [LARGE_MODEL]: {} } },
    wild: { url: wild.url, timeouts, models: { [WILD_MODEL]: {} } },
  };
  const rig = await openRig(upstreams);
  const hostile = hostileConnections(rig.gateway.url);
  return {
    ...rig,
    rich: (await rig.gateway.newCustomer('100000')).key,
    penniless: (await rig.gateway.newCustomer('0')).key,
    connect: hostile.connect,
    close: async () => {
      clearInterval(forgetting);
      hostile.close();
      await rig.close();
      wild.stop();
      await Promise.all([honest.stop(), large.stop()]);
    },
  };
}

/** Opens connections to a gateway from an address that honest customers do not have. */
export function hostileConnections(url: string) {
  const sockets = new Set<Socket>();
  return {
    connect: async (): Promise<Socket> => {
      const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress: HOSTILE_ADDRESS });
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => sockets.delete(socket));
      await Promise.race([once(socket, 'connect').catch(() => undefined), pause(2_000)]);
      return socket;
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}
