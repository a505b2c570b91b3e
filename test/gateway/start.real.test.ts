import { expect } from 'chai';
import { failToStart } from '../support/gateway';

describe('A start', () => {
  const upstreams = { acme: { url: 'http://127.0.0.1:9' } };
  const missing = [
    ['Redis', { REDIS_URL: 'redis://:secret@127.0.0.1:1' }],
    ['Postgres', { DATABASE_URL: 'postgres://me:secret@127.0.0.1:1/tollgate' }],
  ] as const;
  for (const [name, env] of missing) {
    it(`without the ${name} that is configured ends with 78 and names its address, not its password`, async () => {
      const { code, output } = await failToStart({ upstreams, stores: 'real', env });
      expect(code, output).to.equal(78);
      expect(output).to.match(/127\.0\.0\.1:1/);
      expect(output).not.to.include('secret');
      expect(output).not.to.match(/^\s+at /m);
    });
  }
});
