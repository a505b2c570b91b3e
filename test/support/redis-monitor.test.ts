import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { type SeenCommand, watchCommands } from './redis-monitor';
import { emptyRedis } from './shared';
import { until } from './until';

describe('the monitor of a Redis', () => {
  let url: string;
  let client: Redis;

  before(async () => {
    url = await emptyRedis();
    client = new Redis(url);
    // Sends a command, so that the client's own first commands come before the monitor.
    await client.ping();
  });
  after(() => client?.disconnect());

  const watch = async () => {
    const seen: SeenCommand[] = [];
    const { stop } = await watchCommands(url, (command) => seen.push(command));
    return { seen, stop };
  };

  it('reports words and sources unchanged', async () => {
    const { seen, stop } = await watch();
    await client.set('a "key"', 'back\\slash [0 lua] "x"');
    await client.eval("return redis.call('get', KEYS[1])", 1, 'inside');
    await until('all are seen', () => seen.length === 3);
    stop();
    assert.deepEqual(
      seen.map(({ words }) => words.at(-1)),
      ['back\\slash [0 lua] "x"', 'inside', 'inside'],
    );
    assert.deepEqual(
      seen.map(({ source }) => source === 'lua'),
      [false, false, true],
    );
  });

  it('starts while other clients are busy, and misses no later command', async () => {
    let isBusy = true;
    const busy = new Redis(url);
    const others = (async () => {
      while (isBusy) await busy.pipeline(Array.from({ length: 50 }, () => ['ping'])).exec();
    })();
    for (let each = 0; each < 50; each += 1) {
      const { seen, stop } = await watch();
      await client.set('number', each);
      await until('it is seen', () => seen.some(({ words }) => words.join(' ') === `set number ${each}`));
      stop();
    }
    isBusy = false;
    await others;
    busy.disconnect();
  });
});
