import { expect } from 'chai';
import { ask } from '../support/calls';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer } from '../support/upstream';

const SESSION = '6a1f0c3e-57b2-4f0e-9f55-2f4f3f7f8a10';
const DEVICE = 'd'.repeat(64);
const ACCOUNT = '0f0e0d0c-0b0a-4908-8706-050403020100';
const USER_ID = JSON.stringify({ device_id: DEVICE, account_uuid: ACCOUNT, session_id: SESSION });

describe('The session of a call', () => {
  const upstream = useUpstream();
  let key: string;
  let accountId: string;

  const gateway = useGateway(() => ({
    upstreams: { acme: { url: upstream.url } },
    configure: (config) => setPolicy(config, 'model-request', { recordSessions: false }, 'speed'),
  }));
  beforeEach(async () => {
    upstream.reset();
    upstream.always(messagesAnswer());
    ({ key, accountId } = await gateway.newCustomer('10'));
  });

  /** Sends a call with these headers and returns its record. */
  const recorded = async (
    headers: Record<string, string>,
    body: Record<string, unknown> = {},
    path = '/v1/messages',
  ) => {
    const answer = await gateway.call(path, { key, headers, body: ask(body) });
    return gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
  };
  const found = async (query: string) => {
    const { json } = await gateway.call(`/v1/usage?${query}`, { method: 'GET', key });
    return (json.items as { requestId: string }[]).map(({ requestId }) => requestId);
  };

  it('is stored in the usage record of the call, as is the id of the agent; the client names both in headers', async () => {
    const headers = { 'x-claude-code-session-id': SESSION, 'x-claude-code-agent-id': 'agent-a1' };
    expect(await recorded(headers)).to.include({ sessionId: SESSION, agentId: 'agent-a1' });
    expect(await recorded({})).to.include({ sessionId: null, agentId: null });
  });

  it('is read from metadata.user_id if no header names it; the device and account in that field are not stored', async () => {
    const record = await recorded({}, { metadata: { user_id: USER_ID } });
    expect(record).to.include({ sessionId: SESSION });
    const { text } = await gateway.admin('GET', `/admin/v1/usage/${record['requestId']}`);
    for (const kept of [text, gateway.output()]) expect(kept).not.to.contain(DEVICE).and.not.to.contain(ACCOUNT);
  });

  it('is kept as a hash if it does not look like an id, and is found by the original value', async () => {
    const record = await recorded({ 'x-session-id': 'Ana Example, task 7' });
    expect(record['sessionId']).to.match(/^hash:[\w-]{43}$/);
    expect(await found(`session=${encodeURIComponent('Ana Example, task 7')}`)).to.deep.equal([record['requestId']]);
    expect(await found(`session=${record['sessionId']}`)).to.deep.equal([record['requestId']]);
    expect(gateway.output()).not.to.contain('Ana Example');
  });

  it('is not recorded by a pipeline with `recordSessions: false`', async () => {
    const headers = { 'x-claude-code-session-id': SESSION, 'x-claude-code-agent-id': 'agent-a1' };
    const record = await recorded(headers, { metadata: { user_id: USER_ID } }, '/speed/v1/messages');
    expect(record).to.include({ strategy: 'speed', sessionId: null, agentId: null });
  });

  it('filters lists of usage records and the CSV export', async () => {
    const headers = { 'x-claude-code-session-id': SESSION };
    const main = await recorded(headers);
    const sub = await recorded({ ...headers, 'x-claude-code-agent-id': 'agent-a1' });
    await recorded({ 'x-claude-code-session-id': 'another' });
    await recorded({});
    expect(await found(`session=${SESSION}`)).to.have.members([main['requestId'], sub['requestId']]);
    expect(await found(`session=${SESSION}&agent=agent-a1`)).to.deep.equal([sub['requestId']]);
    expect(await found('agent=agent-a1')).to.deep.equal([sub['requestId']]);
    expect(await found('session=nobody')).to.deep.equal([]);

    const { text } = await gateway.call(`/v1/usage.csv?session=${SESSION}`, { method: 'GET', key });
    const [head = '', ...lines] = text
      .trimEnd()
      .split('\r\n')
      .map((line) => line.split(','));
    expect(lines).to.have.length(2);
    for (const line of lines) expect(line[head.indexOf('sessionId')]).to.equal(SESSION);
    expect(lines.map((line) => line[head.indexOf('agentId')])).to.have.members(['', 'agent-a1']);

    const ofAll = await gateway.admin('GET', `/admin/v1/usage?session=${SESSION}&account=${accountId}`);
    expect(ofAll.json.items).to.have.length(2);
    const csv = await gateway.admin('GET', `/admin/v1/usage.csv?agent=agent-a1&account=${accountId}`);
    expect(csv.text.trimEnd().split('\r\n')).to.have.length(2);
  });

  it('is never a label of a metric', async () => {
    await recorded({ 'x-claude-code-session-id': SESSION, 'x-claude-code-agent-id': 'agent-a1' });
    const { text } = await gateway.admin('GET', '/metrics');
    expect(text).not.to.contain(SESSION).and.not.to.contain('agent-a1');
  });

  it('is not in a record that counts many refused calls, because these calls may be of several sessions', async () => {
    const refused = Array.from({ length: 40 }, (_, index) =>
      gateway.call('/v1/messages', {
        key,
        headers: { 'x-session-id': `session-${index}` },
        body: ask({ model: 'no such model' }),
      }),
    );
    await Promise.all(refused);
    const summed = await until('the sum is written', async () => {
      const { json } = await gateway.call('/v1/usage', { method: 'GET', key });
      const items = json.items as { calls: number; sessionId: string | null }[];
      return items.reduce((all, { calls }) => all + calls, 0) === 40
        ? items.filter(({ calls }) => calls > 1)
        : undefined;
    });
    expect(summed).not.to.be.empty;
    for (const { sessionId } of summed) expect(sessionId).to.equal(null);
  });
});
