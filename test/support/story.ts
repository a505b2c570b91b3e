import { type GatewayOptions, startGateway, type TestGateway } from './gateway';
import { startUpstream, type TestUpstream } from './upstream';

/** Starts an upstream before the tests of the suite that calls this, and stops it after them. Its members can be used from then on. */
export function useUpstream(): TestUpstream {
  return started(startUpstream);
}

/** Starts a gateway like {@link useUpstream}. The options are asked for at the start, so that they may name upstreams that started before. */
export function useGateway(options: () => GatewayOptions | Promise<GatewayOptions>): TestGateway {
  return started(async () => startGateway(await options()));
}

/** Returns an object whose members are those of what starts. It stops after the suite's own `after`, which may still need it. */
function started<T extends { stop(): Promise<unknown> }>(start: () => Promise<T>): T {
  let running: T | undefined;
  before(async function () {
    running = await start();
    this.test?.parent?.afterAll(() => running?.stop());
  });
  const now = (): T => {
    if (running === undefined) throw new Error('it has not started yet');
    return running;
  };
  return new Proxy({} as T, {
    get: (_, name) => Reflect.get(now(), name) as unknown,
    ownKeys: () => Reflect.ownKeys(now()),
    getOwnPropertyDescriptor: (_, name) => ({ ...Reflect.getOwnPropertyDescriptor(now(), name), configurable: true }),
  });
}
