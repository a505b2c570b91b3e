import { expect } from 'chai';
import { ask } from '../support/calls';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, respond } from '../support/upstream';

const SESSIONS = Array.from({ length: 20 }, (_, index) => `session-${index}`);
const DOWN = respond({ status: 503, body: {} });

describe('The calls of a session', () => {
  const one = useUpstream();
  const two = useUpstream();
  let key: string;

  const gateway = useGateway(() => ({
    // What other stories have seen of upstreams with these names must not count.
    own: true,
    upstreams: { one: { url: one.url }, two: { url: two.url } },
    configure: (config) => setPolicy(config, 'strategy-routing', { strategy: 'quality', affinity: false }, 'speed'),
  }));

  before(async () => {
    ({ key } = await gateway.newCustomer('1000'));
  });
  beforeEach(async () => {
    for (const upstream of [one, two]) {
      upstream.reset();
      upstream.always(messagesAnswer());
    }
    for (const name of ['one', 'two']) await gateway.admin('POST', `/admin/v1/upstreams/${name}/enable`, {});
  });

  /** Sends a call and returns which upstream answered. */
  const providerOf = async (session?: string, path = '/v1/messages'): Promise<string> => {
    const headers: Record<string, string> = session === undefined ? {} : { 'x-claude-code-session-id': session };
    const answer = await gateway.call(path, { key, headers, body: ask() });
    expect(answer.status, answer.text).to.equal(200);
    return answer.headers['x-routing-provider'] ?? '';
  };
  /** Sends so many calls of each session, all sessions in turn, and returns which upstreams answered each session. */
  const homes = async (calls: number, path?: string): Promise<Map<string, Set<string>>> => {
    const found = new Map(SESSIONS.map((session) => [session, new Set<string>()]));
    for (let call = 0; call < calls; call += 1)
      await Promise.all(SESSIONS.map(async (session) => found.get(session)?.add(await providerOf(session, path))));
    return found;
  };
  const all = (name: string) => new Map(SESSIONS.map((session) => [session, new Set([name])]));

  for (const path of ['/v1/messages', '/quality/v1/messages', '/cost/v1/messages'])
    it(`go to one upstream per session at ${path}, and two equal upstreams share the 20 sessions`, async () => {
      const found = await homes(10, path);
      for (const upstreams of found.values()) expect(upstreams.size).to.equal(1);
      expect(one.calls.length + two.calls.length).to.equal(200);
      expect(one.calls).not.to.be.empty;
      expect(two.calls).not.to.be.empty;
    });

  it('move to the other upstream while their upstream fails, and return when it has recovered', async () => {
    const before = await homes(1);
    one.always(DOWN);
    await until('it is asked no more', async () => {
      const asked = one.calls.length;
      await homes(1);
      return one.calls.length === asked;
    });
    expect(await homes(5)).to.deep.equal(all('two'));
    one.always(messagesAnswer());
    await gateway.admin('POST', '/admin/v1/upstreams/one/enable', {});
    expect(await homes(2)).to.deep.equal(before);
  });

  it('move while an operator has disabled their upstream, and calls of other sessions stay at their upstream', async () => {
    const before = await homes(1);
    const staying = SESSIONS.filter((session) => before.get(session)?.has('one'));
    await gateway.admin('POST', '/admin/v1/upstreams/two/disable', { reason: 'maintenance' });
    const asked = two.calls.length;
    const after = await homes(2);
    expect(after).to.deep.equal(all('one'));
    expect(two.calls.length).to.equal(asked);
    for (const session of staying) expect(after.get(session)).to.deep.equal(before.get(session));
    await gateway.admin('POST', '/admin/v1/upstreams/two/enable', {});
    expect(await homes(1)).to.deep.equal(before);
  });

  it('go to both upstreams with `affinity: false`, like calls without a session', async () => {
    for (const [session, path] of [
      ['session-0', '/speed/v1/messages'],
      [undefined, '/v1/messages'],
    ] as const) {
      const seen = new Set<string>();
      await until('both upstreams answered', async () => seen.add(await providerOf(session, path)).size === 2);
    }
  });

  it('may go to different upstreams under two API keys, because API keys share no cache', async () => {
    const ofKeys = new Set<string>();
    await until('keys differ for one session', async () => {
      ({ key } = await gateway.newCustomer('1'));
      return ofKeys.add(await providerOf('session-0')).size === 2;
    });
  });
});
