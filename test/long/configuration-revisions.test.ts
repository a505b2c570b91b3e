// biome-ignore-all lint/suspicious/noTemplateCurlyInString: so the variables of a YAML file are written
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import knex, { type Knex } from 'knex';
import { parse, stringify } from 'yaml';
import { ask } from '../support/calls';
import { operate } from '../support/command-line';
import { temporaryFolder } from '../support/configuration-folder';
import { newEmbeddedFolder } from '../support/data-folder';
import {
  type Answered,
  type Configured,
  failToStart,
  isRunning,
  MODEL,
  startGateway,
  type TestEndpoint,
  type TestGateway,
} from '../support/gateway';
import { emptyRedis, newDatabase } from '../support/shared';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

const USAGE = { input: 1_000, output: 200 };

const DATABASE = { CONFIG_SOURCE: 'database', CONFIG_ENV: 'ONLY_HERE' };

/** Sets a price in USD per million tokens. A call of these tests costs 1,000 × input + 200 × output. */
function setPrice(config: Configured, input: number, output: number): void {
  config['serviceEndpoints'].acme.models[MODEL].price = { input, output };
}

describe('A configuration revision on two nodes', function () {
  this.timeout(90_000);
  let upstream: TestUpstream;
  let upstreams: Readonly<Record<string, TestEndpoint>>;
  let stores: { redisUrl: string; databaseUrl: string };
  let database: Knex;
  let one: TestGateway;
  let two: TestGateway;
  let key: string;
  /** The text of the file with which the first node started. */
  let first: string;

  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer({ usage: USAGE }));
    upstreams = { acme: { url: upstream.url } };
    stores = { redisUrl: await emptyRedis(), databaseUrl: await newDatabase() };
    database = knex({ client: 'pg', connection: stores.databaseUrl, pool: { min: 0, max: 2 } });
    one = await startGateway({ stores, upstreams, env: { ...DATABASE, ONLY_HERE: 'here-only-5417' } });
    const otherFile = (config: Configured) => setPrice(config, 9, 9);
    two = await startGateway({ stores, upstreams, configure: otherFile, env: DATABASE });
    ({ key } = await one.newCustomer('100'));
    first = await readFile(join(one.configFolder, 'gateway.config.yml'), 'utf8');
  });
  beforeEach(async () => {
    if (!isRunning(two.process)) two = await startGateway({ stores, upstreams, env: DATABASE });
  });
  after(async () => {
    await one?.stop();
    await two?.stop();
    await upstream?.stop();
    await database?.destroy();
  });

  const apply = (text: string, more: object = {}, gateway = one) =>
    gateway.admin('POST', '/admin/v1/config/revisions', { text, ...more });
  const revisionAt = async (gateway: TestGateway) => (await gateway.admin('GET', '/admin/v1/config/revision')).json;
  const status = async () => (await one.admin('GET', '/admin/v1/config/status')).json;
  const newest = async () => Number((await database('config_revisions').max('number as number').first())?.number);
  const audited = (): Promise<{ action: string; actor: string; before: unknown; after: Configured }[]> =>
    database('audit_log').where({ subject: 'config' }).orderBy('id', 'desc');
  const costAt = async (gateway: TestGateway) =>
    (await gateway.call('/v1/messages', { key, body: ask() })).headers['x-ai-cost'];
  const both = (number: number, withinMs = 10_000) =>
    until(
      `both nodes have revision ${number}`,
      async () => {
        const [a, b] = await Promise.all([one, two].map(revisionAt));
        return a.number === number && b.number === number;
      },
      withinMs,
    );

  let prices = 10;
  /** Returns a configuration that was not applied before. */
  function another(change: (config: Configured) => void = () => undefined): string {
    prices += 1;
    const config = parse(first) as Configured;
    setPrice(config, prices, 15);
    change(config);
    return stringify(config, { aliasDuplicateObjects: false });
  }

  function refused(answer: Answered, status: number, code: string): Configured {
    assert.equal(answer.status, status, answer.text);
    assert.equal(answer.json.error.code, code);
    return answer.json.error;
  }

  it('is first made from the file of the node that starts first, and is in force on both', async () => {
    const [a, b] = await Promise.all([one, two].map(revisionAt));
    assert.deepEqual([a.number, a.source, b.number, b.revision], [1, 'database', 1, a.revision]);
    assert.equal(await costAt(two), '0.00600000');
    const [row] = await audited();
    assert.deepEqual(
      [row?.action, row?.actor, row?.after],
      ['config.apply', 'file', { number: 1, revision: a.revision }],
    );
  });

  it('is in force on every node within a second after an operator applies it on one', async () => {
    const stored = await apply(another(), { note: 'dearer' });
    assert.equal(stored.status, 201, stored.text);
    const { number, revision, changes, base } = stored.json;
    assert.deepEqual(changes[0], { what: `price acme/${MODEL} input`, before: '3.00000000', after: '11.00000000' });
    assert.equal((await revisionAt(one)).number, number);
    await both(number, 1_000);
    const answer = await two.call('/v1/messages', { key, body: ask() });
    assert.equal(answer.headers['x-ai-cost'], '0.01400000');
    const record = await two.record(key, String(answer.headers['x-svc-request-id']));
    assert.equal(record['configRevision'], revision);
    const [row] = await audited();
    assert.deepEqual([row?.action, row?.actor], ['config.apply', 'admin']);
    assert.deepEqual(row?.before, base);
    assert.deepEqual(row?.after, { number, revision, note: 'dearer' });
  });

  it('is refused with line, column and reason if it is invalid, and is not stored', async () => {
    const [before, rows] = [await newest(), (await audited()).length];
    for (const dryRun of [true, false]) {
      const answer = await apply(another().replace('maxAttempts:', 'maxAttemps:'), { dryRun });
      const [problem] = refused(answer, 409, 'CONFIGURATION_INVALID').details.problems;
      assert.match(problem.message, /unknown setting "maxAttemps"; did you mean "maxAttempts"\?/);
      assert.ok(problem.line > 1 && problem.column > 1);
    }
    refused(await apply('a: b\u0000'), 400, 'INVALID_FIELD');
    assert.deepEqual([await newest(), (await audited()).length], [before, rows]);
    assert.equal((await revisionAt(one)).lastFailure, null);
  });

  it('is refused with If-Match if another revision was applied meanwhile, and the error names that revision', async () => {
    const seen = await newest();
    const applyAfter = (gateway: TestGateway, text: string, more = {}) =>
      fetch(`${gateway.adminUrl}/admin/v1/config/revisions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${gateway.adminToken}`,
          'content-type': 'application/json',
          'if-match': `"${seen}"`,
        },
        body: JSON.stringify({ text, ...more }),
      });
    assert.equal((await applyAfter(one, another(), { dryRun: true })).status, 200);
    const answers = await Promise.all([one, two, one, two].map((gateway) => applyAfter(gateway, another())));
    assert.deepEqual(answers.map((each) => each.status).sort(), [201, 412, 412, 412]);
    const bodyOf = async (status: number): Promise<Configured> => {
      const answer = answers.find((each) => each.status === status);
      return (await answer?.json()) as Configured;
    };
    const winner = await bodyOf(201);
    const { error } = await bodyOf(412);
    assert.equal(error.code, 'PRECONDITION_FAILED');
    assert.deepEqual([error.details.number, error.details.revision], [winner['number'], winner['revision']]);
    assert.match(
      error.message,
      new RegExp(`^Revision ${seen + 1} \\(${winner['revision']}\\) was applied meanwhile, by admin`),
    );
    assert.equal(await newest(), seen + 1);
    assert.equal((await applyAfter(one, another(), { dryRun: true })).status, 412);
    await both(seen + 1);
  });

  it('is shown with the names of environment variables, never with their values', async () => {
    const text = another((config) => {
      config['apiEndpoints'].extra = { host: '${ONLY_HERE}.example', paths: ['/v1/messages'], methods: ['POST'] };
      config['pipelines'].quality.apiEndpoints.push('extra');
    });
    const plan = await apply(text, { dryRun: true });
    assert.deepEqual(plan.json.changes.at(-1), {
      what: 'route POST ${ONLY_HERE}.example/v1/messages',
      before: null,
      after: 'quality',
    });
    assert.ok(!plan.text.includes('here-only-5417'), plan.text);
  });

  it('leaves the previous one in force on a node that cannot apply it, and the node reports the reason', async () => {
    const before = await revisionAt(two);
    const cost = await costAt(two);
    const text = another((config) => {
      config['admin'].host = '127.0.0.1';
      config['serviceEndpoints'].acme.tier = '${ONLY_HERE:-standard}';
      config['apiEndpoints'].extra = { paths: ['/${ONLY_HERE}/v1/messages'], methods: ['POST'] };
      config['pipelines'].quality.apiEndpoints.push('extra');
    }).replace('tier: ${ONLY_HERE:-standard}', 'tier: standard');
    const { number } = (await apply(text)).json;
    const failure = await until('the other node says so', async () => (await revisionAt(two)).lastFailure);
    assert.deepEqual([failure.number, failure.actor], [number, 'revision']);
    assert.match(failure.problems[0].message, /the environment variable ONLY_HERE is not set/);
    assert.ok(failure.problems[0].line > 1);
    const after = await revisionAt(two);
    assert.deepEqual([after.number, after.revision, after.since], [before.number, before.revision, before.since]);
    assert.equal(await costAt(two), cost);
    const { nodes } = await until('all nodes know', async () => {
      const all = await status();
      const [refused, taken] = [
        all.nodes.some((each: Configured) => each['failure'] !== null),
        all.nodes.some((each: Configured) => each['number'] === number),
      ];
      return refused && taken ? all : undefined;
    });
    const unable = nodes.find((each: Configured) => each['failure'] !== null);
    assert.deepEqual([unable.number, unable.failure.number], [before.number, number]);
    assert.equal(nodes.find((each: Configured) => each !== unable).number, number);
    const start = await failToStart({ stores, upstreams, env: DATABASE });
    assert.equal(start.code, 78);
    assert.match(start.output, new RegExp(`revision ${number} in Postgres, is not valid on this node`));
    assert.match(start.output, /gateway\.config\.yml:\d+:\d+: the environment variable ONLY_HERE is not set/);
    const back = await one.admin('POST', `/admin/v1/config/revisions/${before.number}/rollback`, {});
    assert.equal(back.status, 201, back.text);
    await both(number + 1);
    assert.equal((await revisionAt(two)).lastFailure, null);
  });

  it('is restored as a new revision by a rollback to its number or its hash', async () => {
    const { number, revision } = await revisionAt(one);
    await apply(another());
    const rollback = (name: string | number, body: object = {}) =>
      two.admin('POST', `/admin/v1/config/revisions/${name}/rollback`, body);
    const plan = await rollback(revision, { dryRun: true });
    assert.deepEqual([plan.status, plan.json.revision, plan.json.number], [200, revision, null]);
    const { json } = await rollback(number, { note: 'too dear' });
    assert.deepEqual([json.number, json.revision], [number + 2, revision]);
    await both(number + 2);
    const [row] = await audited();
    const restored = { number: number + 2, revision, note: 'too dear', restores: number };
    assert.deepEqual([row?.action, row?.after], ['config.rollback', restored]);
    const { items, nextCursor } = (await one.admin('GET', '/admin/v1/config/revisions?limit=2')).json;
    assert.deepEqual(
      items.map((each: Configured) => [each['number'], each['restores'], each['note']]),
      [
        [number + 2, number, 'too dear'],
        [number + 1, null, null],
      ],
    );
    const next = (await one.admin('GET', `/admin/v1/config/revisions?limit=1&cursor=${nextCursor}`)).json;
    assert.equal(next.items[0].number, number);
    refused(await rollback(99_999), 404, 'NOT_FOUND');
    assert.equal((await one.admin('GET', '/admin/v1/config/revisions/1')).json.text, first);
  });

  it('with accepted prices is in force on both nodes within a second of its time, and not before', async () => {
    const config = parse(first) as Configured;
    config['serviceEndpoints'].acme.models[MODEL].price = { input: 3, output: 15, source: 'litellm' };
    const { number } = (await apply(stringify(config))).json;
    await both(number);
    const text = JSON.stringify({
      [MODEL]: { litellm_provider: 'acme', input_cost_per_token: 4e-6, output_cost_per_token: 15e-6 },
    });
    const proposals = '/admin/v1/catalogue/proposals';
    const { id } = (await one.admin('POST', proposals, { source: 'litellm', text })).json;
    await two.admin('PATCH', `${proposals}/${id}`, { accept: ['1'] });
    const from = new Date(Date.now() + 2_000);
    const answer = await one.admin('POST', `${proposals}/${id}/apply`, { from: from.toISOString() });
    assert.equal(answer.status, 201, answer.text);
    assert.deepEqual([await costAt(one), await costAt(two)], ['0.00600000', '0.00600000']);
    await until('the time has come', async () => Date.now() >= from.getTime());
    await both(number + 1, 1_000);
    assert.deepEqual([await costAt(one), await costAt(two)], ['0.00700000', '0.00700000']);
    const applied = (await audited()).filter(
      ({ action, after }) => action === 'config.apply' && after['number'] > number,
    );
    assert.equal(applied.length, 1);
  });

  it('stays in force on a reload, because the changed file is ignored', async () => {
    const { number } = await revisionAt(two);
    await two.changeConfiguration('http: [');
    const answer = await two.admin('POST', '/admin/v1/config/reload');
    assert.equal(answer.status, 200, answer.text);
    assert.equal((await revisionAt(two)).number, number);
  });

  it('that a node stored before it was killed is in force on the other node, and on that node after its restart', async () => {
    const before = await newest();
    const stored = apply(another(), {}, two).catch(() => undefined);
    await until('it is stored', async () => (await newest()) > before);
    await two.kill();
    await stored;
    const [row] = await audited();
    assert.deepEqual([row?.action, row?.after['number']], ['config.apply', before + 1]);
    await until('the other node has it', async () => (await revisionAt(one)).number === before + 1);
    const silentSince = database.raw("now() - interval '11 seconds'");
    await database('config_nodes').where('name', 'like', `%:${two.pid}`).update({ seen_at: silentSince });
    assert.equal((await status()).nodes.length, 1);
    two = await startGateway({ stores, upstreams, env: DATABASE });
    assert.equal((await revisionAt(two)).number, before + 1);
    assert.equal(await costAt(two), await costAt(one));
    await until('it is one of the nodes', async () => (await status()).nodes.length === 2);
  });

  describe('applied from the command line', () => {
    async function tollgate(args: readonly string[], answer?: string) {
      const questions: string[] = [];
      const reply = async (question: string) => {
        questions.push(question);
        return answer ?? '';
      };
      const input = { read: async () => another(), ...(answer !== undefined && { ask: reply }) };
      return { ...(await operate(one, ['config', ...args], input)), questions };
    }

    const file = (text: string) => join(temporaryFolder({ 'new.yml': text }), 'new.yml');

    it('is shown and confirmed first, and the command waits until every node has applied it', async () => {
      const path = file(another());
      const before = await newest();
      const no = await tollgate(['apply', '--from', path], 'n');
      assert.deepEqual([no.status, no.questions.length, await newest()], [1, 1, before], no.notes);
      assert.match(no.out, new RegExp(`^price acme/${MODEL} input +\\d+\\.0{8} +${prices}\\.0{8}$`, 'm'));
      const yes = await tollgate(['apply', '--from', path, '--note', 'because'], 'y');
      assert.equal(yes.status, 0, yes.notes);
      assert.match(yes.notes, new RegExp(`^Revision ${before + 1} \\([0-9a-f]{12}\\) is applied\\.$`, 'm'));
      assert.match(yes.notes, /took it \(1 of 2\)\n.* took it \(2 of 2\)/);
      assert.match((await tollgate(['history'])).out, new RegExp(`^${before + 1} .* admin .*because$`, 'm'));
      const again = await tollgate(['apply', '--from', path, '--yes']);
      assert.match(again.notes, /the newest, already has this content/);
      assert.deepEqual([again.status, await newest()], [0, before + 1]);
      assert.equal((await tollgate(['show'])).out, await readFile(path, 'utf8'));
      assert.equal((await tollgate(['show', '1'])).out, first);
    });

    it('makes the command fail if a node cannot apply it; the error names the node, the reason and a working rollback', async () => {
      const before = await newest();
      const text = another((config) => {
        config['apiEndpoints'].extra = { paths: ['/${ONLY_HERE}/v1/messages'], methods: ['POST'] };
        config['pipelines'].quality.apiEndpoints.push('extra');
      });
      const { status: code, notes, out } = await tollgate(['apply', '--from', '-', '--yes']);
      assert.equal(code, 0, notes + out);
      const failed = await tollgate(['apply', '--from', file(text), '--yes']);
      assert.equal(failed.status, 1, `${failed.notes}${two.output().slice(-5_000)}`);
      assert.match(
        failed.notes,
        new RegExp(
          `:${two.pid} rejected it: revision ${before + 2}: gateway.config.yml:\\d+:\\d+: .*ONLY_HERE is not set`,
        ),
      );
      assert.match(failed.notes, new RegExp(`Roll all of them back with: tollgate config rollback ${before + 1}`));
      assert.match((await tollgate(['status'])).out, /ONLY_HERE is not set/);
      const back = await tollgate(['rollback', String(before + 1), '--yes']);
      assert.equal(back.status, 0, back.notes);
      assert.doesNotMatch((await tollgate(['status'])).out, /ONLY_HERE/);
      assert.match((await tollgate(['revision'])).out, new RegExp(`^number +${before + 3}$`, 'm'));
    });
  });
});

describe('A configuration revision on the embedded store', function () {
  this.timeout(120_000);

  it('stays in force after a restart, although the file differs', async () => {
    const upstream = await startUpstream();
    upstream.always(messagesAnswer({ usage: USAGE }));
    const stores = { dataFolder: await newEmbeddedFolder() };
    const options = { stores, upstreams: { acme: { url: upstream.url } }, env: DATABASE };
    let gateway = await startGateway(options);
    try {
      const config = parse(await readFile(join(gateway.configFolder, 'gateway.config.yml'), 'utf8')) as Configured;
      setPrice(config, 6, 30);
      const answer = await gateway.admin('POST', '/admin/v1/config/revisions', { text: stringify(config) });
      assert.equal(answer.status, 201, answer.text);
      const { key } = await gateway.newCustomer('1');
      const cost = async () => (await gateway.call('/v1/messages', { key, body: ask() })).headers['x-ai-cost'];
      assert.equal(await cost(), '0.01200000');
      await gateway.stop();
      gateway = await startGateway(options);
      assert.equal(await cost(), '0.01200000');
      const { nodes, newest } = (await gateway.admin('GET', '/admin/v1/config/status')).json;
      assert.deepEqual([nodes.length, nodes[0].number, newest.number], [1, 2, 2]);
    } finally {
      await gateway.stop();
      await upstream.stop();
    }
  });
});
