import assert from 'node:assert/strict';
import { Agent, request } from 'undici';
import { failToStart } from '../support/gateway';
import { useGateway } from '../support/story';

describe('The admin token', function () {
  this.timeout(90_000);
  const gateway = useGateway(() => ({ upstreams: { acme: { url: 'http://127.0.0.1:9' } } }));

  /** Sends a request with this token from an address of this machine. */
  async function show(token: string, localAddress: string) {
    const dispatcher = new Agent({ localAddress });
    const headers = { authorization: `Bearer ${token}` };
    const answer = await request(`${gateway.adminUrl}/admin/v1/accounts`, { dispatcher, headers });
    const body = (await answer.body.json()) as { error?: { code: string } };
    await dispatcher.close();
    return { status: answer.statusCode, code: body.error?.code, headers: answer.headers };
  }

  it('is accepted at any time, although wrong tokens from the same address delay their answers', async () => {
    const guesses = await Promise.all(Array.from({ length: 40 }, (_, guess) => show(`guess-${guess}`, '127.0.0.2')));
    const slowed = guesses.filter(({ status }) => status === 429);
    // On a slow machine the first delay ends before the last guess.
    assert.ok(slowed.length >= 15 && slowed.length <= 20, `${slowed.length} are slowed`);
    for (const { code, headers } of slowed) {
      assert.equal(code, 'ADMIN_TOKEN_SLOWED');
      assert.ok(Number(headers['retry-after']) >= 1);
      assert.equal(headers['connection'], 'close');
    }
    assert.equal((await show(gateway.adminToken, '127.0.0.2')).status, 200);
    assert.equal((await show(gateway.adminToken, '127.0.0.3')).status, 200);
  });

  it('is demanded with 401, without a delay, from an address that has sent no wrong token', async () => {
    assert.equal((await show('wrong', '127.0.0.4')).status, 401);
  });

  it('must have at least 24 characters if other machines can reach the admin listener', async () => {
    const { code, output } = await failToStart({
      upstreams: { acme: { url: 'http://127.0.0.1:9' } },
      configure: (config) => {
        config['admin'].host = '0.0.0.0';
      },
      env: { ADMIN_TOKEN: 'x'.repeat(23) },
    });
    assert.equal(code, 78);
    assert.match(output, /ADMIN_TOKEN has 23 characters.*\(0\.0\.0\.0\).*at least 24/);
  });

  it('causes one log line while clients guess it, and the line does not contain the guesses', () => {
    const lines = gateway
      .output()
      .split('\n')
      .filter((line) => line.includes('wrong admin tokens'));
    assert.equal(lines.length, 1);
    assert.equal(JSON.parse(lines[0] ?? '{}').place, '127.0.0.2');
    assert.ok(!gateway.output().includes('guess-'));
  });
});
