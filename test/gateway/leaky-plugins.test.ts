import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { temporaryFolder } from '../support/configuration-folder';
import { type GatewayOptions, startGateway, type TestGateway } from '../support/gateway';
import { builtServer } from '../support/shared';
import { textOf } from '../support/sources';
import { until } from '../support/until';

/** Returns the source of a policy that leaks a timer and a socket with each preparation, and of one that makes a single timer. */
const POLICIES = (dist: string) => `
const net = require('node:net');
const { definePolicy } = require('${dist}/exports/policy.js');
const { policiesManifest } = require('${dist}/exports/manifest.js');
const policy = (name, prepare) => definePolicy({
  contract: 'policy/1',
  name, summary: 'Does nothing.', schema: { type: 'object', properties: {} }, needs: [], provides: [], prepare,
});
const server = net.createServer().listen(0).unref();
let only;
module.exports = policiesManifest('leaks', [
  policy('leaky', () => {
    setInterval(() => {}, 1_000);
    net.connect(server.address().port, '127.0.0.1');
    return () => undefined;
  }),
  policy('thrifty', () => {
    only ??= setInterval(() => {}, 1_000);
    return () => undefined;
  }),
]);
`;

/** Returns the source of a plugin whose section leaks a timer with each check. */
const PLUGIN = (dist: string) => `
const { definePlugin } = require('${dist}/exports/plugin.js');
const { pluginManifest } = require('${dist}/exports/manifest.js');
module.exports = pluginManifest(definePlugin({
  contract: 'plugin/1',
  name: 'leaky-section',
  summary: 'Checks its section.',
  schema: { type: 'object', properties: {} },
  sections: { extra: { schema: { type: 'object' }, check: () => { setTimeout(() => {}, 100_000); return []; } } },
}));
`;

for (const fastLane of ['true', 'false']) {
  describe(`A plugin that leaks (${fastLane === 'true' ? 'fast lane' : 'through Express'})`, () => {
    let gateway: TestGateway;

    before(async () => {
      const dist = dirname(await builtServer());
      const { plugins } = parse(textOf('system.config.yml'));
      const packaged = (text: string) => ({ package: join(temporaryFolder({ 'index.js': text }), 'index.js') });
      const options: GatewayOptions = {
        upstreams: {},
        env: { FAST_LANE: fastLane },
        configure: (config) => {
          config['extra'] = {};
          config['policies'].push('leaky', 'thrifty');
          config['pipelines'].cost.policies.unshift({ leaky: null }, { thrifty: null });
          config['pipelines'].speed.policies.unshift({ leaky: null });
        },
        system: {
          plugins: { ...plugins, leaks: packaged(POLICIES(dist)), 'leaky-section': packaged(PLUGIN(dist)) },
        },
      };
      gateway = await startGateway(options);
    });

    after(() => gateway.kill());

    it('at each reload is named in the log and counted in the metrics, unlike a plugin that opens one timer only once', async () => {
      expect(leaks()).to.deep.equal([]);
      const prepared = fastLane === 'true' ? 2 : 4;
      for (const times of [1, 2]) {
        expect((await gateway.admin('POST', '/admin/v1/config/reload')).status).to.equal(200);
        await until('both are named', () => leaks().length === 2 * times);
        expect(leaks().slice(-2)).to.have.deep.members([
          { by: 'policy leaky', left: { Timeout: prepared, TCPSocketWrap: prepared } },
          { by: 'plugin leaky-section', left: { Timeout: 1 } },
        ]);
      }
      const { text } = await gateway.admin('GET', '/metrics');
      expect(text).to.include(
        `tollgate_plugin_left_open_total{by="policy leaky",resource="TCPSocketWrap"} ${2 * prepared}`,
      );
      expect(text).to.include('tollgate_plugin_left_open_total{by="plugin leaky-section",resource="Timeout"} 2');
    });

    const leaks = () =>
      gateway
        .output()
        .split('\n')
        .filter((line) => line.includes('left resources open'))
        .map((line) => JSON.parse(line))
        .map(({ by, left }) => ({ by, left }));
  });
}
