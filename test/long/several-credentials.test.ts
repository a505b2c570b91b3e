import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { ask, askIn } from '../support/calls';
import { temporaryFolder } from '../support/configuration-folder';
import { startGateway, type TestGateway } from '../support/gateway';
import { TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import {
  messagesAnswer,
  messagesFailure,
  type RecordedCall,
  responsesAnswer,
  responsesStream,
  type Script,
  startUpstream,
  type TestUpstream,
} from '../support/upstream';

const KEYS = { FIRST_KEY: 'first-secret', SECOND_KEY: 'second-secret', THIRD_KEY: 'third-secret' };

function shown({ headers }: RecordedCall): string {
  return String(headers['x-api-key'] ?? headers.authorization);
}

/** Answers each listed key with its refusal, and every other key with success. */
function byKey(refusals: Readonly<Record<string, Script>>, answer = messagesAnswer()): Script {
  return { answer: (exchange) => (refusals[shown(exchange.call)] ?? answer).answer(exchange) };
}

describe('Several credentials of one upstream', () => {
  let upstream: TestUpstream;
  let other: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  const credentials = (...more: object[]) => ({
    credentials: [{ env: 'FIRST_KEY', weight: 1_000_000 }, { env: 'SECOND_KEY' }, ...more],
  });
  const start = async (settings: object = credentials(), env: NodeJS.ProcessEnv = {}) => {
    gateway = await startGateway({
      upstreams: {
        acme: { url: upstream.url, tier: 'official', ...settings },
        other: { url: other.url },
      },
      env: { ...KEYS, LOG_LEVEL: 'debug', ...env },
    });
    ({ key } = await gateway.newCustomer('10'));
  };
  const call = (more: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
    gateway.call('/v1/messages', { key, body: ask(more), headers });
  const listed = async () => (await gateway.admin('GET', '/admin/v1/upstreams/acme')).json;
  const stateOf = async (name: string) =>
    (await listed()).credentials.find((each: { name: string }) => each.name === name);

  beforeEach(async () => {
    upstream = await startUpstream();
    other = await startUpstream();
    other.always(messagesAnswer());
  });
  afterEach(async () => {
    await gateway?.stop();
    await upstream.stop();
    await other.stop();
  });

  it('are tried one after the other: a rate-limited one is skipped until its Retry-After', async () => {
    await start();
    upstream.always(byKey({ 'first-secret': messagesFailure(429, {}, { 'retry-after': '60' }) }));
    const answer = await call();
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.headers).to.include({ 'x-routing-provider': 'acme', 'x-routing-attempts': '2' });
    expect(answer.headers['x-routing-fallback'] ?? 'false').to.equal('false');
    expect(upstream.calls.map(shown)).to.deep.equal(['first-secret', 'second-secret']);
    const limited = await stateOf('env FIRST_KEY');
    expect(limited).to.include({ state: 'rate-limited', refusedWith: 429 });
    expect(Date.parse(limited.restsUntil) - Date.now()).to.be.within(50_000, 60_000);
    expect((await call()).status).to.equal(200);
    expect(upstream.calls.map(shown)).to.deep.equal(['first-secret', 'second-secret', 'second-secret']);
    expect(await listed()).to.include({ state: 'available', consecutiveFailures: 0 });
    expect(other.calls).to.have.length(0);
  });

  it('are named in the attempts of a call, and their secrets are in no log, list or record', async () => {
    await start();
    upstream.always(byKey({ 'first-secret': messagesFailure(429) }));
    const answer = await call();
    const id = answer.headers['x-svc-request-id'] ?? '';
    const attempts = await until('the attempts are recorded', async () => {
      const { json } = await gateway.admin('GET', `/admin/v1/usage/${id}/attempts`);
      return json.items?.length === 2 ? json.items : undefined;
    });
    expect(
      attempts.map((each: { credential: string; status: number }) => [each.credential, each.status]),
    ).to.deep.equal([
      ['env FIRST_KEY', 429],
      ['env SECOND_KEY', 200],
    ]);
    expect(gateway.output()).to.include('"credential":"env FIRST_KEY"');
    const told = [gateway.output(), JSON.stringify(await listed()), JSON.stringify(attempts)].join('\n');
    for (const secret of Object.values(KEYS)) expect(told).not.to.include(secret);
  });

  for (const status of [401, 403])
    it(`are tried without the one that the upstream refused with ${status}, and the operator sees its state`, async () => {
      await start();
      upstream.always(byKey({ 'first-secret': messagesFailure(status) }));
      expect((await call()).status).to.equal(200);
      expect((await call()).status).to.equal(200);
      expect(upstream.calls.map(shown)).to.deep.equal(['first-secret', 'second-secret', 'second-secret']);
      expect(await stateOf('env FIRST_KEY')).to.include({ state: 'refused', refusedWith: status });
      expect(gateway.output().match(/an upstream rejects one of its credentials/g)).to.have.length(1);
      const metrics = await gateway.admin('GET', '/metrics');
      expect(metrics.text)
        .to.include(
          `tollgate_upstream_credential_refusals_total{upstream="acme",credential="env FIRST_KEY",status="${status}"} 1`,
        )
        .and.include('tollgate_upstream_credential_refused{upstream="acme",credential="env FIRST_KEY"} 1')
        .and.include('tollgate_upstream_credential_refused{upstream="acme",credential="env SECOND_KEY"} 0');
    });

  it('are skipped with their upstream while all of them are rate-limited, and another upstream answers', async () => {
    await start();
    upstream.always(
      byKey({
        'first-secret': messagesFailure(429, {}, { 'retry-after': '60' }),
        'second-secret': messagesFailure(429, {}, { 'retry-after': '30' }),
      }),
    );
    const answer = await call();
    expect(answer.headers).to.include({ 'x-routing-provider': 'other', 'x-routing-attempts': '3' });
    const { state, restsUntil } = await listed();
    expect(state).to.equal('resting');
    expect(Date.parse(restsUntil) - Date.now()).to.be.within(20_000, 30_000);
    expect((await call()).headers['x-routing-provider']).to.equal('other');
    expect(upstream.calls).to.have.length(2);
  });

  it('are shared among sessions by weight, and each session keeps its credential', async () => {
    await start({ credentials: [{ env: 'FIRST_KEY', weight: 3 }, { env: 'SECOND_KEY' }] });
    upstream.always(messagesAnswer());
    const keyOf = new Map<string, Set<string>>();
    for (let at = 0; at < 120; at += 1) {
      const session = `session-${at % 40}`;
      await call({}, { 'x-session-id': session });
      const last = upstream.calls.at(-1);
      if (last !== undefined) keyOf.set(session, (keyOf.get(session) ?? new Set()).add(shown(last)));
    }
    expect([...keyOf.values()].map(({ size }) => size)).to.deep.equal(Array(40).fill(1));
    const first = [...keyOf.values()].filter((keys) => keys.has('first-secret')).length;
    expect(first).to.be.within(20, 38);
  });

  it('are recorded with the objects that the vendor keeps, so each object is requested with its own credential', async () => {
    await start({ credentials: [{ env: 'FIRST_KEY' }, { env: 'SECOND_KEY' }, { env: 'THIRD_KEY' }] });
    const maker = new Map<string, string>();
    upstream.always({
      answer: (exchange) => {
        const id = `resp_${upstream.calls.length}`;
        maker.set(id, shown(exchange.call));
        return responsesAnswer({ id }).answer(exchange);
      },
    });
    for (let at = 0; at < 12; at += 1) {
      const made = await gateway.call('/v1/responses', { key, body: askIn('responses', { store: true }) });
      expect(made.status, made.text).to.equal(200);
      const before = upstream.calls.length;
      const { id } = made.json;
      const body = askIn('responses', { store: true, previous_response_id: id });
      expect((await gateway.call('/v1/responses', { key, body })).status).to.equal(200);
      expect(upstream.calls.slice(before).map(shown)).to.deep.equal([maker.get(id)]);
    }
  });

  it('do not change within a WebSocket: all of its calls use the credential of its first answer', async () => {
    await start({ webSocket: true, credentials: [{ env: 'FIRST_KEY' }, { env: 'SECOND_KEY' }, { env: 'THIRD_KEY' }] });
    upstream.always(responsesStream());
    const shownBy = new Set<string>();
    for (let at = 1; at <= 6; at += 1) {
      const socket = await TestSocket.open(gateway, key);
      for (let call = 0; call < 4; call += 1) expect((await socket.call()).at(-1).type).to.equal('response.completed');
      socket.close();
      await socket.closed;
      expect(upstream.webSockets.handshakes, 'one socket for four calls').to.have.length(at);
      shownBy.add(String(upstream.webSockets.handshakes.at(-1)?.authorization));
    }
    for (const value of shownBy) expect(value).to.match(/^Bearer (first|second|third)-secret$/);
  });

  it('are not needed for an upstream with `none: true`, which receives no credential', async () => {
    await start({ credential: { none: true } });
    upstream.always(messagesAnswer());
    expect((await call()).status).to.equal(200);
    expect(upstream.calls[0]?.headers).not.to.have.any.keys('x-api-key', 'authorization');
  });

  describe('when a command prints the credential,', () => {
    let folder: string;
    const script = (text: string) => writeFile(join(folder, 'token'), `#!/bin/sh\n${text}\n`, { mode: 0o700 });
    const rotating = (refreshEvery: string) => ({
      credential: { command: ['token', 'an argument'], name: 'tokens', refreshEvery },
    });
    beforeEach(() => {
      folder = temporaryFolder({});
    });

    it("the gateway fetches it before the first call and again later, and the command does not see the gateway's secrets", async () => {
      await script(`echo "$1 $ADMIN_TOKEN" > "${folder}/seen"; date +token-%s%N`);
      await start(rotating('1s'), { CREDENTIALS_DIR: folder });
      upstream.always(messagesAnswer());
      expect((await call()).status).to.equal(200);
      const first = shown(upstream.calls[0] as RecordedCall);
      expect(first).to.match(/^token-\d+$/);
      await until('another token is shown', async () => {
        await call();
        return shown(upstream.calls.at(-1) as RecordedCall) !== first;
      });
      expect(await readFile(join(folder, 'seen'), 'utf8')).to.equal('an argument \n');
      expect(gateway.output()).not.to.include(first);
    });

    it('the gateway continues with the last credential if the command fails, and logs the failure without the output', async () => {
      await script('echo good-token');
      await start(rotating('1s'), { CREDENTIALS_DIR: folder });
      await script('echo half-a-secret; echo half-a-secret >&2; exit 3');
      await until('the failure is logged', () =>
        gateway.output().includes('a credential could not be fetched; the fetch is retried'),
      );
      upstream.always(messagesAnswer());
      expect((await call()).status).to.equal(200);
      expect(shown(upstream.calls[0] as RecordedCall)).to.equal('good-token');
      expect(gateway.output()).to.include('it ended with 3').and.include('"lastIsUsed":true');
      expect(gateway.output()).not.to.include('half-a-secret');
    });

    it('another upstream answers until the command first succeeds, and the list of upstreams gives the reason', async () => {
      await script('exit 1');
      await start(rotating('1s'), { CREDENTIALS_DIR: folder });
      expect((await call()).headers['x-routing-provider']).to.equal('other');
      expect(upstream.calls).to.have.length(0);
      expect(await stateOf('tokens')).to.include({
        state: 'missing',
        missing: 'the credential could not be fetched: it ended with 1',
      });
      await script('echo late-token');
      await until('it is asked', async () => {
        await gateway.admin('POST', '/admin/v1/upstreams/acme/enable');
        upstream.always(messagesAnswer());
        await call();
        return upstream.calls.length > 0;
      });
    });
  });
});
