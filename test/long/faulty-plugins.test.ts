import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { parse } from 'yaml';
import { ask } from '../support/calls';
import { temporaryFolder } from '../support/configuration-folder';
import { failToStart } from '../support/gateway';
import { statusOf } from '../support/raw';
import { builtServer } from '../support/shared';
import { textOf } from '../support/sources';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer } from '../support/upstream';

/** Writes a package whose manifest is the expression `made`. */
async function packaged(made: string): Promise<{ readonly folder: string; readonly package: string }> {
  const dist = dirname(await builtServer());
  const folder = temporaryFolder({
    'index.js': `
const { definePlugin } = require('${dist}/exports/plugin.js');
const { definePolicy } = require('${dist}/exports/policy.js');
const { manifest, pluginManifest, policiesManifest } = require('${dist}/exports/manifest.js');
const { defineAdapter, registerAdapter } = require('${dist}/exports/upstream.js');
const { registerSupplier } = require('${dist}/exports/supplier.js');
const { declareErrors } = require('${dist}/exports/errors.js');
const schema = { type: 'object', properties: {} };
const plugin = (name, own) => pluginManifest(definePlugin({ contract: 'plugin/1', name, summary: 'Of a test.', schema, ...own }));
module.exports = ${made};
`,
  });
  return { folder, package: join(folder, 'index.js') };
}

const SHIPPED = parse(textOf('system.config.yml')).plugins as Record<string, object>;

/** Returns the source of a manifest whose policy has the given mistake. */
const policy = (mistake: string) =>
  `manifest({ name: 'bad', policies: [{ ...definePolicy({
    contract: 'policy/1', name: 'odd', summary: 'S', schema, needs: [], provides: [], prepare: () => () => undefined,
  }), ${mistake} }] })`;

describe('A plugin with a mistake', () => {
  for (const [mistake, made, words] of [
    ['throws in `start`', `plugin('bad', { start: async () => { throw new Error('no port'); } })`, 'no port'],
    ['throws in `routes`', `plugin('bad', { routes: () => { throw new Error('no table'); } })`, 'no table'],
    [
      'has the name of another plugin',
      `manifest({ name: 'bad', plugins: [definePlugin({ contract: 'plugin/1', name: 'usage', summary: 'S', schema })] })`,
      'two packages contain a plugin named "usage"',
    ],
    [
      'has another name than its key in system.config.yml',
      `plugin('good', {})`,
      'contains the plugin "good", not "bad": write good: instead of bad:',
    ],
    [
      'is written for another contract',
      `plugin('bad', { contract: 'plugin/9' })`,
      'supports plugin/1: install a release',
    ],
    ['names no contract', `plugin('bad', { contract: undefined })`, "write `contract: 'plugin/1'` in it"],
    ['has a list where a function belongs', `plugin('bad', { routes: [] })`, 'has routes, and not as a function'],
    ['has no schema', `plugin('bad', { schema: undefined })`, 'the plugin "bad" has no schema'],
    [
      'declares a route of a built-in plugin',
      `plugin('bad', { routes: () => [
        { listener: 'public', auth: 'none', method: 'GET', path: '/v1/usage/{any}', summary: 'S', answers: {}, handle: async () => {} },
      ] })`,
      'both answer GET /v1/usage/{any}, one as GET /v1/usage/totals (public listener)',
    ],
    [
      'throws in `register`',
      `plugin('bad', { register: () => { throw new Error('no card'); } })`,
      'in `register`: no card',
    ],
    ['contains a policy of an unknown contract', policy(`contract: 'policy/9'`), 'the contract policy/9'],
    ['contains a policy without prepare', policy('prepare: undefined'), 'the policy "odd" lacks prepare'],
    ['contains a policy without needs', policy('needs: undefined'), 'lacks `needs` or `provides`'],
    [
      'contains a policy with the name of a built-in one',
      policy(`name: 'failover'`),
      'two packages contain a policy named "failover"',
    ],
    [
      'contains a policy that provides what every call has',
      policy(`provides: ['cutOff']`),
      'provides `cutOff`, which every call already has',
    ],
    [
      'contains an adapter of an unknown contract',
      `manifest({ name: 'bad', adapters: [{ contract: 'upstream/9', name: 'odd', protocols: ['chat'], schema }] })`,
      'the contract upstream/9, but this version of Tollgate supports upstream/1',
    ],
    [
      'contains an adapter without functions',
      `manifest({ name: 'bad', adapters: [{ contract: 'upstream/1', name: 'odd', protocols: ['chat'], schema }] })`,
      'lacks request, authorize, judge',
    ],
    [
      'contains a driver of an unknown contract',
      `plugin('bad', { register: () => registerSupplier({ contract: 'supplier/9', name: 'odd', schema, offeringSchema: schema }) })`,
      'the driver "odd" requires the contract supplier/9',
    ],
    [
      'contains a driver without open',
      `plugin('bad', { register: () => registerSupplier({ contract: 'supplier/1', name: 'odd', schema, offeringSchema: schema }) })`,
      'the driver "odd" lacks open',
    ],
    [
      'declares an error code that exists',
      `void declareErrors({ FORBIDDEN: {} })`,
      'FORBIDDEN cannot be declared: the code exists already',
    ],
    [
      'uses another copy of Tollgate',
      `{ ...plugin('bad', {}), tollgate: { plugins: [], policies: [], adapters: [], madeBy: '/elsewhere/manifest.js' } }`,
      'uses another copy of Tollgate (/elsewhere/manifest.js)',
    ],
    ['does not export a manifest', `{}`, 'must be created with `manifest` of tollgate/manifest'],
    [
      'declares a route of model calls',
      `plugin('bad', { routes: () => [
        { listener: 'public', auth: 'none', method: 'POST', path: '/v1/messages', summary: 'S', answers: {}, handle: async () => {} },
      ] })`,
      'POST /v1/messages, and so does the endpoint "default"',
    ],
  ] as const) {
    it(`makes the start fail with status 78 and the name of its package if it ${mistake}`, async () => {
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

describe('A policy that never resolves', () => {
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(async () => {
    upstream.always(messagesAnswer());
    const never = await packaged(`policiesManifest('never', [definePolicy({
  contract: 'policy/1',
      name: 'never', summary: 'Waits.', schema, needs: [], provides: [], prepare: () => () => new Promise(() => {}),
    })])`);
    return {
      upstreams: { acme: { url: upstream.url } },
      configure: (config) => {
        config['policies'].push('never');
        const { policies } = config['pipelines'].cost;
        const reserve = policies.findIndex((step: object) => 'reserve-settle' in step);
        policies.splice(reserve + 1, 0, { never: null });
      },
      system: { stepTimeout: '300ms', plugins: { ...SHIPPED, never: { package: never.package } } },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('1'));
  });

  it('is named in the log after stepTimeout; the call gets 500 and the gateway releases its hold', async () => {
    const answer = await gateway.call('/cost/v1/messages', { key, body: ask() });
    expect([answer.status, answer.json.error.code]).to.deep.equal([500, 'INTERNAL_ERROR']);
    const words = 'the policy \\"never\\" has not finished its step within 300 ms';
    await until('it is named', () => gateway.output().includes(words));
    expect(await gateway.balance(key)).to.include({ balanceUsd: '1.00000000', heldUsd: '0.00000000' });
  });

  it('is not assumed if a client takes longer than stepTimeout to send its body', async () => {
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
