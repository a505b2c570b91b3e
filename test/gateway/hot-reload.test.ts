import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { request } from 'undici';
import { BROKEN_CONFIGURATIONS } from '../support/broken-configurations';
import { ask } from '../support/calls';
import { operate } from '../support/command-line';
import { type Configured, MODEL } from '../support/gateway';
import { held, PROBED } from '../support/held';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, messagesStream, startUpstream } from '../support/upstream';

const USAGE = { input: 1_000, output: 200 };
/** The cost of that usage, 1,000 × 3 + 200 × 15 USD per million, and twice the cost. */
const COST = '0.00600000';
const COST_DOUBLED = '0.01200000';

function setPrice(config: Configured, input: number, output: number): void {
  config['serviceEndpoints'].acme.models[MODEL].price = { input, output };
}

for (const fastLane of ['true', 'false']) {
  describe(`A hot reload (${fastLane === 'true' ? 'fast lane' : 'through Express'})`, function () {
    this.timeout(90_000);
    const upstream = useUpstream();
    let key: string;
    /** The text of the file at the start. */
    let sound: string;

    const gateway = useGateway(() => {
      const upstreams = { acme: { url: upstream.url } };
      const env = { FAST_LANE: fastLane, ...PROBED };
      return { upstreams, env };
    });

    before(async () => {
      ({ key } = await gateway.newCustomer('100'));
      sound = await readFile(join(gateway.configFolder, 'gateway.config.yml'), 'utf8');
    });
    beforeEach(async () => {
      upstream.reset();
      upstream.always(messagesAnswer({ usage: USAGE }));
      await gateway.changeConfiguration(sound);
      expect((await reload()).status).to.equal(200);
    });

    const reload = () => gateway.admin('POST', '/admin/v1/config/reload');
    const revision = async () => (await gateway.admin('GET', '/admin/v1/config/revision')).json;
    const call = () => gateway.call('/v1/messages', { key, body: ask() });
    const recordOf = (headers: Record<string, unknown>) => gateway.record(key, String(headers['x-svc-request-id']));

    it('makes the next call follow the new configuration, and every record names its revision', async () => {
      const before = (await revision()).revision;
      expect((await recordOf((await call()).headers))['configRevision']).to.equal(before);
      await gateway.changeConfiguration((config) => setPrice(config, 6, 30));
      const answer = await reload();
      expect(answer.json).to.deep.include({ before, restartNeeded: [] });
      expect(answer.json.revision).not.to.equal(before);
      const later = await call();
      expect(later.headers['x-ai-cost']).to.equal(COST_DOUBLED);
      expect((await recordOf(later.headers))['configRevision']).to.equal(answer.json.revision);
    });

    it('adds and removes endpoints, upstreams and models at once', async () => {
      await gateway.changeConfiguration((config) => {
        config['apiEndpoints'].extra = { paths: ['/extra/v1/messages'], methods: ['POST'] };
        config['pipelines'].quality.apiEndpoints.push('extra');
        const { acme } = config['serviceEndpoints'];
        config['serviceEndpoints'].other = { ...acme, models: { 'other-small': acme.models[MODEL] } };
      });
      const extra = () => gateway.call('/extra/v1/messages', { key, body: ask({ model: 'other-small' }) });
      expect((await extra()).status).to.equal(404);
      await reload();
      const answer = await extra();
      expect(answer.status).to.equal(200);
      expect(answer.headers['x-routing-provider']).to.equal('other');
      const models = async () =>
        (await gateway.call('/v1/models', { method: 'GET', key })).json.data.map(({ id }: { id: string }) => id);
      expect(await models()).to.have.members([MODEL, 'other-small']);
      await gateway.changeConfiguration((config) => {
        delete config['apiEndpoints'].extra;
        config['pipelines'].quality.apiEndpoints.pop();
        delete config['serviceEndpoints'].other;
      });
      await reload();
      expect((await extra()).status).to.equal(404);
      expect(await models()).to.deep.equal([MODEL]);
    });

    it('does not change the configuration of a stream that has begun', async () => {
      const before = (await revision()).revision;
      let release = (): void => undefined;
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      upstream.next(messagesStream({ texts: ['one ', 'two '], usage: USAGE, waitFor: { before: 4, until: released } }));
      const running = await request(`${gateway.url}/v1/messages`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': key },
        body: JSON.stringify(ask({ stream: true })),
      });
      await gateway.changeConfiguration((config) => setPrice(config, 6, 30));
      expect((await reload()).status).to.equal(200);
      expect((await call()).headers['x-ai-cost']).to.equal(COST_DOUBLED);
      release();
      expect(await running.body.text()).to.contain('message_stop');
      expect(await recordOf(running.headers)).to.include({ cost: COST, configRevision: before, billing: 'actual' });
    });

    it('keeps the connections of an upstream that it does not change', async () => {
      await call();
      const { connections } = upstream;
      await gateway.changeConfiguration((config) => setPrice(config, 6, 30));
      await reload();
      await call();
      expect(upstream.connections).to.equal(connections);
    });

    it('closes the connections of an upstream that it removes', async () => {
      const other = await startUpstream();
      other.always(messagesAnswer({ usage: USAGE }));
      await gateway.changeConfiguration((config) => {
        config['serviceEndpoints'].acme.url = other.url;
      });
      await reload();
      await call();
      expect(other.openConnections).to.equal(1);
      await gateway.changeConfiguration((config) => {
        config['serviceEndpoints'].acme.url = upstream.url;
        config['serviceEndpoints'].renamed = { ...config['serviceEndpoints'].acme, url: other.url };
        config['serviceEndpoints'].renamed.models = { renamed: config['serviceEndpoints'].acme.models[MODEL] };
      });
      await reload();
      await gateway.call('/v1/messages', { key, body: ask({ model: 'renamed' }) });
      expect(other.openConnections).to.be.greaterThan(0);
      await gateway.changeConfiguration((config) => void delete config['serviceEndpoints'].renamed);
      await reload();
      await call();
      await until('no connection is left', () => other.openConnections === 0);
      await other.stop();
    });

    // Measured through Express only, because it has everything that could pile up: its pipelines and the table of the fast lane.
    const itThroughExpress = fastLane === 'true' ? () => undefined : it;
    itThroughExpress('200 times leaves no memory, no handle and no route behind', async () => {
      const churn = async (times: number) => {
        for (let round = 0; round < times; round += 1) {
          await gateway.changeConfiguration((config) => setPrice(config, 3 + (round % 2), 15));
          expect((await reload()).status).to.equal(200);
          if (round % 20 === 0) await call();
        }
        return held(gateway);
      };
      // The first reloads fill caches that stay, and compile code.
      const before = await churn(150);
      const after = await churn(200);
      expect(after.handles).to.be.at.most(before.handles + 2);
      expect(after.routes).to.equal(before.routes);
      // Reading this file alone takes more than 10 KB, and preparing it far more.
      expect(after.heapBytes - before.heapBytes).to.be.below(2_000_000);
    });
  });
}

describe('A reload', function () {
  this.timeout(90_000);
  const upstream = useUpstream();
  let key: string;
  let sound: string;

  const gateway = useGateway(() => {
    const upstreams = { acme: { url: upstream.url } };
    return { upstreams };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('100'));
    sound = await readFile(join(gateway.configFolder, 'gateway.config.yml'), 'utf8');
    upstream.always(messagesAnswer({ usage: USAGE }));
  });

  const reload = () => gateway.admin('POST', '/admin/v1/config/reload');
  const revision = async () => (await gateway.admin('GET', '/admin/v1/config/revision')).json;
  const call = () => gateway.call('/v1/messages', { key, body: ask() });
  const metric = async (name: string) =>
    Number(new RegExp(`^${name} (.+)$`, 'm').exec((await gateway.admin('GET', '/metrics')).text)?.[1]);

  describe('changes nothing and is refused with file, line and reason for', () => {
    afterEach(async () => {
      await gateway.changeConfiguration(sound);
      expect((await reload()).status).to.equal(200);
      expect((await revision()).lastFailure).to.equal(null);
    });

    for (const { what, breaks, says } of BROKEN_CONFIGURATIONS) {
      it(what, async () => {
        const { revision: before, since } = await revision();
        const stream = await openStream();
        await gateway.changeConfiguration((config) => {
          setPrice(config, 6, 30);
          return breaks(config);
        });
        const refused = await reload();
        expect(refused.status, refused.text).to.equal(409);
        expect(refused.json.error.code).to.equal('CONFIGURATION_INVALID');
        const { problems } = refused.json.error.details;
        expect(problems.map(lineOf).join('\n')).to.match(says);
        const state = await revision();
        expect(state).to.include({ revision: before, since });
        expect(state.lastFailure).to.deep.include({ actor: 'admin', problems });
        expect((await call()).headers['x-ai-cost']).to.equal(COST);
        expect(await stream.finish()).to.contain('message_stop');
      });
    }
  });

  it('that the gateway refuses is reported in the log, the metrics and the output of the command', async () => {
    const refusals = 'tollgate_config_reloads_total{outcome="refused"}'.replace(/[{}"]/g, '\\$&');
    const before = await metric(refusals);
    await gateway.changeConfiguration('http: [');
    const { status, out, notes } = await operate(gateway, ['config', 'reload']);
    expect([status, notes]).to.deep.equal([1, 'tollgate: 1 problem; the active configuration stays.\n']);
    expect(out).to.match(/^gateway\.config\.yml:\d+:\d+: /);
    expect((await operate(gateway, ['config', 'revision'])).out).to.contain(out.trim());
    expect(await metric(refusals)).to.be.greaterThan(before);
    expect(await metric('tollgate_config_last_reload_successful')).to.equal(0);
    await until('the log says so', () => gateway.output().includes('the configuration was not reloaded'));
    await gateway.changeConfiguration(sound);
    await reload();
    expect(await metric('tollgate_config_last_reload_successful')).to.equal(1);
  });

  it('runs on SIGHUP, and the audit log names the actor "signal"', async () => {
    await gateway.changeConfiguration(`${sound}# by a signal\n`);
    gateway.process.kill('SIGHUP');
    const row = await until('the reload is in the audit log', async () => {
      const { items } = (await gateway.admin('GET', '/admin/v1/audit?subject=config&limit=1')).json;
      return items.find((each: { actor: string }) => each.actor === 'signal');
    });
    expect(row.action).to.equal('config.reload');
    expect(row.after).to.deep.equal({ revision: (await revision()).revision });
  });

  it('by an operator is recorded in the audit log with the old and the new revision', async () => {
    const before = (await revision()).revision;
    await gateway.changeConfiguration(`${sound}# by an operator\n`);
    const { json } = await reload();
    const { items } = (await gateway.admin('GET', '/admin/v1/audit?subject=config&limit=1')).json;
    expect(items[0]).to.deep.include({
      actor: 'admin',
      action: 'config.reload',
      before: { revision: before },
      after: { revision: json.revision },
    });
  });

  it('is the only way to change a configuration from files: the gateway refuses a configuration sent to its admin API', async () => {
    const text = await readFile(join(gateway.configFolder, 'gateway.config.yml'), 'utf8');
    for (const [path, body] of [
      ['/admin/v1/config/revisions', { text }],
      ['/admin/v1/config/revisions/1/rollback', {}],
    ] as const) {
      const { status, json } = await gateway.admin('POST', path, body);
      expect([status, json.error.code]).to.deep.equal([409, 'CONFIGURATION_FROM_FILES']);
      expect(json.error.message).to.match(/change gateway\.config\.yml on every node and reload it.*config\.source/);
    }
    const inForce = (await revision()).revision;
    const status = await until('the node has told what it has', async () => {
      const { json } = await gateway.admin('GET', '/admin/v1/config/status');
      return json.nodes[0].revision === inForce ? json : undefined;
    });
    expect([status.source, status.newest, status.nodes.length]).to.deep.equal(['file', null, 1]);
    expect(status.nodes[0]).to.include({ source: 'file', number: null, failure: null });
  });

  it('reports that changes to system.config.yml and to the listeners need a restart', async () => {
    await gateway.changeConfiguration((config) => {
      config['http'].hostname = '127.0.0.2';
    });
    await appendFile(join(gateway.configFolder, 'system.config.yml'), '# changed\n');
    const restartNeeded = ['system.config.yml', 'gateway.config.yml: http'];
    expect((await reload()).json.restartNeeded).to.deep.equal(restartNeeded);
    expect((await revision()).restartNeeded).to.deep.equal(restartNeeded);
    await until('the log says so', () => gateway.output().includes('take effect only after a restart'));
    expect((await call()).status).to.equal(200);
  });

  /** Opens a stream that waits in its middle until `finish`. */
  async function openStream(): Promise<{ finish(): Promise<string> }> {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    upstream.next(messagesStream({ texts: ['one ', 'two '], usage: USAGE, waitFor: { before: 4, until: released } }));
    const { body } = await request(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': key },
      body: JSON.stringify(ask({ stream: true })),
    });
    return {
      finish: () => {
        release();
        return body.text();
      },
    };
  }
});

describe('A watched configuration', function () {
  this.timeout(90_000);
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(() => {
    upstream.always(messagesAnswer({ usage: USAGE }));
    return {
      upstreams: { acme: { url: upstream.url } },
      env: { WATCH_CONFIG: 'true' },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('100'));
  });

  const revision = async () => (await gateway.admin('GET', '/admin/v1/config/revision')).json;

  it('is reloaded when its file changes, and a broken file is reported', async () => {
    const before = (await revision()).revision;
    await gateway.changeConfiguration((config) => setPrice(config, 6, 30));
    await until('the new file is in force', async () => (await revision()).revision !== before);
    expect((await gateway.call('/v1/messages', { key, body: ask() })).headers['x-ai-cost']).to.equal(COST_DOUBLED);
    await gateway.changeConfiguration('http: [');
    await until('the failure is shown', async () => (await revision()).lastFailure?.actor === 'file');
  });
});

function lineOf({ file, line, column, message }: Configured): string {
  return `${file}:${line}:${column}: ${message}`;
}
