import assert from 'node:assert/strict';
import { buildCatalog } from '../../core/catalog/catalog';
import type { Configuration } from '../../core/configuration/configuration';
import type { ChangeCheck, PluginGateway } from '../../core/gateway/plugin-gateway';
import { applyConfigRoute } from '../../plugins/operator/routes/configuration';
import { DATABASES, type TestDatabase } from '../support/databases';
import { serveRoutes, type TestServer } from '../support/serve';

/** Makes a configuration whose plugins' checks the test supplies. */
function configurationOf(text: string, number?: number): Configuration {
  const sections = new Map([['share', text]]);
  return {
    text,
    number,
    revision: `r-${text}`,
    pipelines: [],
    sections,
    rollouts: [],
    warnings: [],
    catalog: buildCatalog([]),
    gateway: {},
    written: {},
  } as unknown as Configuration;
}

describe('a change of the configuration with problems', function () {
  this.timeout(60_000);
  let opened: TestDatabase;
  let server: TestServer;
  const changeChecks: ChangeCheck[] = [
    async (before, next) => {
      const [from, to] = [before, next].map(({ text }) => Number(text));
      return (to ?? 0) > (from ?? 0) * 2 ? [`from ${from} % to ${to} % leaves a stage out`] : [];
    },
    async () => [],
  ];

  before(async () => {
    opened = await (DATABASES.find(({ name }) => name === 'Postgres') as (typeof DATABASES)[number]).open();
    const gateway = {
      database: opened.database,
      changeChecks,
      configurationSource: { is: 'database', check: (text: string) => configurationOf(text) },
      liveConfiguration: { current: configurationOf('10', 1), reload: async () => undefined },
    };
    server = await serveRoutes([applyConfigRoute(gateway as unknown as PluginGateway)]);
  });
  after(async () => {
    await server?.close();
    await opened?.close();
  });

  async function apply(body: object) {
    const response = await fetch(`${server.url}/admin/v1/config/revisions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    // biome-ignore lint/suspicious/noExplicitAny: looked at by the test
    return { status: response.status, json: (await response.json()) as any };
  }

  it('is reported with its problems, refused, and applied only with force, which the audit log records', async () => {
    const objections = ['from 10 % to 50 % leaves a stage out'];
    const plan = await apply({ text: '50', dryRun: true });
    assert.deepEqual([plan.status, plan.json.objections], [200, objections]);
    const refused = await apply({ text: '50' });
    assert.deepEqual([refused.status, refused.json.error.code], [409, 'CHANGE_NEEDS_FORCE']);
    assert.deepEqual(refused.json.error.details, { objections });
    assert.deepEqual(await opened.database('config_revisions').select(), []);
    const forced = await apply({ text: '50', force: true });
    assert.deepEqual([forced.status, forced.json.number], [201, 1]);
    const row = await opened.database('audit_log').orderBy('id', 'desc').first();
    assert.deepEqual(row.after, { number: 1, revision: 'r-50', forced: objections });
  });

  it('is applied without force if there are no problems', async () => {
    const fine = await apply({ text: '20', force: true });
    assert.equal(fine.status, 201);
    const row = await opened.database('audit_log').orderBy('id', 'desc').first();
    assert.deepEqual(row.after, { number: 2, revision: 'r-20' });
  });
});
