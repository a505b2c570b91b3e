import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { parse } from 'yaml';
import { ask } from '../support/calls';
import { temporaryFolder } from '../support/configuration-folder';
import { failToStart, startGateway, type TestGateway } from '../support/gateway';
import { statusOf } from '../support/raw';
import { builtServer } from '../support/shared';
import { textOf } from '../support/sources';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

/** A package whose manifest is what `made` says. */
async function packaged(made: string): Promise<{ readonly folder: string; readonly package: string }> {
  const dist = dirname(await builtServer());
  const folder = temporaryFolder({
    'index.js': `
const { definePlugin } = require('${dist}/exports/plugin.js');
const { definePolicy } = require('${dist}/exports/policy.js');
const { pluginManifest, policiesManifest } = require('${dist}/exports/manifest.js');
const schema = { type: 'object', properties: {} };
const plugin = (name, own) => pluginManifest(definePlugin({ name, summary: 'Of a test.', schema, ...own }));
module.exports = ${made};
`,
  });
  return { folder, package: join(folder, 'index.js') };
}

const SHIPPED = parse(textOf('system.config.yml')).plugins as Record<string, object>;

describe('A plugin with a mistake', function () {
  this.timeout(60_000);

  for (const [mistake, made, words] of [
    ['throws in its start', `plugin('bad', { start: async () => { throw new Error('no port'); } })`, 'no port'],
    ['throws in its routes', `plugin('bad', { routes: () => { throw new Error('no table'); } })`, 'no table'],
    ['has the name of another', `plugin('usage', {})`, 'two packages bring a plugin named "usage"'],
    [
      'takes the address of a model call',
      `plugin('bad', { routes: () => [
        { listener: 'public', auth: 'none', method: 'POST', path: '/v1/messages', summary: 'S', answers: {}, handle: async () => {} },
      ] })`,
      'POST /v1/messages, and so does the endpoint "default"',
    ],
  ] as const) {
    it(`stops the start with status 78 and its package when it ${mistake}`, async () => {
      const bad = await packaged(made);
      const { code, output } = await failToStart({
        upstreams: {},
        system: { plugins: { ...SHIPPED, bad: { package: bad.package } } },
      });
      expect(code, output).to.equal(78);
      expect(output).to.include(words).and.include(bad.folder).and.include('system.config.yml');
    });
  }
});

describe('A policy that never resolves', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer());
    const never = await packaged(`policiesManifest('never', [definePolicy({
      name: 'never', summary: 'Waits.', schema, needs: [], provides: [], prepare: () => () => new Promise(() => {}),
    })])`);
    gateway = await startGateway({
      upstreams: { acme: { url: upstream.url } },
      configure: (config) => {
        config['policies'].push('never');
        const { policies } = config['pipelines'].cost;
        const reserve = policies.findIndex((step: object) => 'reserve-settle' in step);
        policies.splice(reserve + 1, 0, { never: null });
      },
      system: { stepTimeout: '300ms', plugins: { ...SHIPPED, never: { package: never.package } } },
    });
    ({ key } = await gateway.newCustomer('1'));
  });

  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });

  it('gives 500 after stepTimeout, is named in the log, and its hold ends', async () => {
    const answer = await gateway.call('/cost/v1/messages', { key, body: ask() });
    expect([answer.status, answer.json.error.code]).to.deep.equal([500, 'INTERNAL_ERROR']);
    const words = 'the policy \\"never\\" has not finished its step within 300 ms';
    await until('it is named', () => gateway.output().includes(words));
    expect(await gateway.balance(key)).to.include({ balanceUsd: '1.00000000', heldUsd: '0.00000000' });
  });

  it('is not a client that takes longer than stepTimeout to send its body', async () => {
    const body = JSON.stringify(ask());
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    const head = ['POST /v1/messages HTTP/1.1', 'Host: x', `x-api-key: ${key}`, 'content-type: application/json'];
    socket.write(
      `${head.join('\r\n')}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body.slice(0, 10)}`,
    );
    await sleep(900);
    socket.write(body.slice(10));
    let answer = '';
    for await (const chunk of socket) answer += String(chunk);
    expect(statusOf(answer)).to.equal(200);
  });
});
