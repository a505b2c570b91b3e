import assert from 'node:assert/strict';
import { startGateway, type TestGateway } from '../support/gateway';
import { databaseOf } from '../support/stores';

const upstreams = { acme: { url: 'http://127.0.0.1:9' } };

/** Guesses the password of a user through a proxy that names this client address. */
async function guess({ url }: TestGateway, from: string): Promise<void> {
  const answer = await fetch(`${url}/console/api/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url, 'x-forwarded-for': from },
    body: JSON.stringify({ email: 'ada@example.com', password: 'a guess' }),
  });
  assert.equal(answer.status, 401);
  await answer.arrayBuffer();
}

function warnings(gateway: TestGateway): string[] {
  const lines = gateway.output().split('\n');
  return lines.filter((line) => line.includes('proxies.count in system.config.yml is 0'));
}

describe('A gateway behind proxies', function () {
  this.timeout(120_000);

  for (const [by, options, places] of [
    ['the client address that its proxy names, with proxies.count', { system: { proxies: { count: 1 } } }, 2],
    ['the address of its proxy without the setting, and warns once', {}, 1],
  ] as const) {
    it(`counts sign-in attempts by ${by}`, async () => {
      const gateway = await startGateway({ upstreams, ...options, own: true });
      for (const from of ['192.0.2.1', '192.0.2.2', '192.0.2.2']) await guess(gateway, from);
      const lines = warnings(gateway);
      await gateway.stop();
      assert.equal(lines.length, places === 1 ? 1 : 0);
      if (places === 1) assert.equal(JSON.parse(lines[0] ?? '{}').peer, '127.0.0.1');
      const database = await databaseOf(gateway.stores);
      // There is one row for the e-mail address, and one for each client address.
      assert.equal((await database('sign_in_attempts')).length, 1 + places);
      await database.destroy();
    });
  }
});
