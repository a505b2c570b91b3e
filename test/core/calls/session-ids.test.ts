import { expect } from 'chai';
import { agentOf, namedInMetadata, SessionIds, sessionOf } from '../../../core/calls/session-ids';

const DEVICE = 'd'.repeat(64);
const ACCOUNT = '0f0e0d0c-0b0a-4908-8706-050403020100';
const SESSION = '6a1f0c3e-57b2-4f0e-9f55-2f4f3f7f8a10';

describe('the session of a call', () => {
  const table: readonly [name: string, headers: Record<string, string>, session: string | undefined][] = [
    ['Claude Code', { 'x-claude-code-session-id': SESSION }, SESSION],
    ['Codex', { 'session-id': SESSION, 'thread-id': 't', 'x-client-request-id': 'r' }, SESSION],
    ['OpenCode', { 'x-session-affinity': 'ses_dfb', 'x-session-id': 'ses_dfb' }, 'ses_dfb'],
    ['a client that has it for affinity alone', { 'x-session-affinity': 'ses_dfb' }, 'ses_dfb'],
    ['a client that sends two', { 'x-session-id': 'other', 'x-claude-code-session-id': SESSION }, SESSION],
    ['a client that sends an empty one, too', { 'x-claude-code-session-id': '', 'session-id': SESSION }, SESSION],
    ['a client that names none', { 'x-request-id': SESSION, cookie: 'session-id=1' }, undefined],
  ];
  for (const [name, headers, session] of table)
    it(`is read from the headers of ${name}`, () => expect(sessionOf(headers)).to.equal(session));

  const userIds: readonly [name: string, userId: unknown, session: string | undefined][] = [
    ['JSON', JSON.stringify({ device_id: DEVICE, account_uuid: ACCOUNT, session_id: SESSION }), SESSION],
    ['JSON without an account', JSON.stringify({ device_id: DEVICE, account_uuid: '', session_id: SESSION }), SESSION],
    ['JSON without a session', JSON.stringify({ device_id: DEVICE }), undefined],
    ['JSON whose session is no text', JSON.stringify({ session_id: 7 }), undefined],
    ['text that only begins like JSON', '{session_id', undefined],
    ['joined words', `user_${DEVICE}_account_${ACCOUNT}_session_${SESSION}`, SESSION],
    ['joined words without an account', `user_${DEVICE}_account__session_${SESSION}`, SESSION],
    ['joined words without a session', `user_${DEVICE}_account_${ACCOUNT}`, undefined],
    ["a customer's own user id", 'customer-17', undefined],
    ['empty text', '', undefined],
    ['a number', 17, undefined],
    ['nothing', undefined, undefined],
  ];
  for (const [name, userId, session] of userIds)
    it(`${session === undefined ? 'is not found' : 'is found'} in a user_id of ${name}`, () =>
      expect(namedInMetadata(JSON.stringify({ user_id: userId })).session).to.equal(session));

  const endUsers = ['customer-17', '{session_id', JSON.stringify({ session_id: 7 }), 'user_ana_account_7'];
  for (const [name, userId] of [...userIds, ...endUsers.map((each) => [each, each] as const)]) {
    const isEndUser = endUsers.includes(String(userId));
    it(`${isEndUser ? 'is the end user' : 'names no end user'} in a user_id of ${name}`, () => {
      const { endUser } = namedInMetadata(JSON.stringify({ user_id: userId }));
      expect(endUser).to.equal(isEndUser ? userId : undefined);
    });
  }

  it('is undefined for metadata in any other format', () => {
    for (const metadata of [undefined, 'null', '1', '"text"', '[]', '{}'])
      expect(namedInMetadata(metadata)).to.deep.equal({});
  });

  it('includes an agent id if the client sends one', () => {
    expect(agentOf({ 'x-claude-code-agent-id': 'agent-a1' })).to.equal('agent-a1');
    expect(agentOf({ 'x-claude-code-session-id': SESSION })).to.equal(undefined);
  });
});

describe('the usage record of a call with a session id', () => {
  const ids = new SessionIds('secret');

  for (const id of [SESSION, 'ses_dfbb1c0fcffewNNUEItMEgllXP', 'a', 'A.b_c:d-9', 'x'.repeat(64)])
    it(`contains the session id ${id} unchanged`, () => expect(ids.recorded(id)).to.equal(id));

  for (const id of ['ana@acme.example', 'two words', '', 'é', 'x'.repeat(65), 'line\nbreak', `${SESSION}\n`])
    it(`contains a hash instead of the session id ${JSON.stringify(id)}`, () => {
      expect(ids.recorded(id)).to.match(/^hash:[A-Za-z0-9_-]{43}$/);
      expect(ids.recorded(id)).to.equal(new SessionIds('secret').recorded(id));
      expect(ids.recorded(id)).not.to.equal(new SessionIds('another secret').recorded(id));
    });

  it('has the same session id when it is recorded again, so that a search by the shown id finds its records', () => {
    expect(ids.recorded(ids.recorded('two words'))).to.equal(ids.recorded('two words'));
  });

  it("uses one secret for session ids and for names of vendors' cache parts, which also depend on account and name", () => {
    const name = ids.cacheName('account', 'plan');
    expect(name)
      .to.match(/^[0-9a-f]{32}$/)
      .and.to.equal(new SessionIds('secret').cacheName('account', 'plan'));
    const others = [
      new SessionIds('another secret').cacheName('account', 'plan'),
      ids.cacheName('other', 'plan'),
      ids.cacheName('account'),
      ids.cacheName('account', ''),
    ];
    expect(new Set([name, ...others]).size).to.equal(5);
  });
});
