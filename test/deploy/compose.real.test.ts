import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { parse } from 'yaml';
import { ask } from '../support/calls';
import { TestCollector } from '../support/collector';
import { COMPOSE_FOLDER, PASSWORD, readCompose, startPostgresOfCompose, startRedisOfCompose } from '../support/compose';
import { temporaryFolder } from '../support/configuration-folder';
import { freePort } from '../support/free-port';
import { startGateway, type TestGateway } from '../support/gateway';
import type { TestPostgres } from '../support/postgres';
import { startPrometheus } from '../support/prometheus';
import type { TestRedis } from '../support/redis';
import { PROJECT, textOf } from '../support/sources';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

const run = promisify(execFile);

const COLLECTOR = 'http://collector:4318';

const { services, volumes, networks } = readCompose();

describe('the services of deploy/compose/compose.yaml, run from Debian packages', function () {
  this.timeout(180_000);
  let upstream: TestUpstream;
  let redis: TestRedis;
  let postgres: TestPostgres;
  let collector: TestCollector;
  let gateway: TestGateway | undefined;

  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer({ usage: { input: 10, output: 5 } }));
    collector = await TestCollector.start();
    [redis, postgres] = await Promise.all([startRedisOfCompose(), startPostgresOfCompose()]);
  });
  after(async () => {
    await gateway?.stop();
    await postgres?.stop();
    await redis?.stop();
    await collector?.stop();
    await upstream?.stop();
  });

  /** Starts the gateway with the environment of its service. The other services have other ports, and every call is traced. */
  const start = async (databaseUrl: string): Promise<TestGateway> => {
    const { REDIS_URL = '', DATABASE_URL = '', ADMIN_TOKEN: _, ...environment } = services.gateway.environment ?? {};
    const redisUrl = REDIS_URL.replace(/\$\{\w+\}/, PASSWORD).replace('redis:6379', `127.0.0.1:${redis.port}`);
    const { pathname, host } = new URL(databaseUrl);
    const ofService = DATABASE_URL.replace(/\$\{\w+\}/, PASSWORD);
    const address = ofService.replace('postgres:5432/tollgate', `${host}${pathname}`);
    const given = Object.entries(environment).map(([name, value]) => [name, value.replace(/^\$\{.*\}$/, '')]);
    return startGateway({
      stores: { redisUrl, databaseUrl: address },
      upstreams: { acme: { url: upstream.url } },
      env: {
        ...Object.fromEntries(given),
        ADMIN_PORT: String(await freePort()),
        OTEL_EXPORTER_OTLP_ENDPOINT: environment['OTEL_EXPORTER_OTLP_ENDPOINT']?.replace(COLLECTOR, collector.url),
        OTEL_TRACES_SAMPLER_ARG: '1',
      },
    });
  };

  it('charge a call, show metrics, send a trace, and keep the money when Redis is killed and all services restart', async () => {
    const client = new Redis(redis.url);
    assert.deepEqual(await client.config('GET', 'appendonly'), ['appendonly', 'yes']);
    assert.deepEqual(await client.config('GET', 'maxmemory-policy'), ['maxmemory-policy', 'noeviction']);
    client.disconnect();
    const database = await postgres.createDatabase();
    gateway = await start(database);
    const { key } = await gateway.newCustomer('1');
    const call = async (at: TestGateway) => (await at.call('/v1/messages', { key, body: ask() })).status;
    const has = (at: TestGateway, balance: string) =>
      until(`the balance is ${balance}`, async () => {
        const { balanceUsd, heldUsd } = await at.balance(key);
        return balanceUsd === balance && heldUsd === '0.00000000';
      });
    assert.equal(await call(gateway), 200);
    await has(gateway, '0.99989500');
    await collector.trace(2, ({ name }) => name === 'POST /v1/messages');
    assert.match((await gateway.admin('GET', '/metrics')).text, /^tollgate_ledger_ready 1$/m);
    assert.equal(await gateway.stop(), 0);
    await redis.kill();
    await redis.start();
    gateway = await start(database);
    await has(gateway, '0.99989500');
    assert.equal(await call(gateway), 200);
    await has(gateway, '0.99979000');
    const { status, json } = await gateway.admin('GET', '/admin/v1/ledger/verify');
    assert.deepEqual([status, json.items], [200, []]);
  });

  it('keep clients without the password away from Redis', async () => {
    const client = new Redis(redis.port, '127.0.0.1', { enableReadyCheck: false });
    await assert.rejects(client.get('x'), /NOAUTH/);
    client.disconnect();
  });

  it('use separate networks: only the gateway reaches the stores, and Grafana reaches only Prometheus', () => {
    const peersOf = (name: keyof typeof services) =>
      Object.entries(services)
        .filter(([, { networks: joined = ['default'] }]) =>
          joined.some((network) => (services[name].networks ?? ['default']).includes(network)),
        )
        .map(([peer]) => peer);
    assert.deepEqual(peersOf('redis'), ['redis', 'postgres', 'gateway']);
    assert.deepEqual(peersOf('postgres'), ['redis', 'postgres', 'gateway']);
    assert.deepEqual(peersOf('grafana'), ['prometheus', 'grafana']);
    assert.deepEqual(networks['stores'], { internal: true });
  });

  it('create the Prometheus token once, with only the permission to read metrics', async () => {
    const at = gateway ?? assert.fail('the gateway has not started');
    const folder = temporaryFolder({});
    const { entrypoint = [], command = [], environment = {} } = services['metrics-token'];
    // Compose writes $$ for a $.
    const [shell = '', ...words] = [...entrypoint, ...command].map((word) =>
      word.replaceAll('$$', '$').replaceAll('/data', folder),
    );
    const given: Readonly<Record<string, string>> = { TOLLGATE_URL: at.adminUrl, TOLLGATE_TOKEN: at.adminToken };
    assert.deepEqual(Object.keys(environment), Object.keys(given));
    const make = () => run(shell, words, { cwd: PROJECT, env: { ...process.env, ...given } });

    await make();
    const token = readFileSync(join(folder, 'token'), 'utf8').trim();
    const own = await fetch(`${at.adminUrl}/admin/v1/tokens/own`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal(((await own.json()) as { role: string }).role, 'metrics');
    await make();
    assert.equal(readFileSync(join(folder, 'token'), 'utf8').trim(), token);

    const [job] = parse(textOf('deploy/prometheus/prometheus.yml')).scrape_configs;
    const mounted = services.prometheus.volumes?.find((volume) => volume.startsWith('metrics-token:'))?.split(':')[1];
    assert.equal(job.authorization.credentials_file, `${mounted}/token`);
    const prometheus = await startPrometheus(new URL(at.adminUrl).host, { credentials_file: join(folder, 'token') });
    try {
      const query = 'tollgate_ledger_ready == 1';
      await until('Prometheus has scraped', async () => (await prometheus.series(query)) === 1);
    } finally {
      await prometheus.stop();
    }
  });

  it('mount only existing files and declared volumes', () => {
    const sources = Object.values(services).flatMap((service) =>
      (service.volumes ?? []).map((volume) => volume.split(':')[0] ?? ''),
    );
    const [files, named] = [
      sources.filter((each) => each.startsWith('.')),
      sources.filter((each) => !each.startsWith('.')),
    ];
    const lost = files.filter((file) => !existsSync(join(PROJECT, COMPOSE_FOLDER, file)));
    assert.deepEqual(lost, []);
    assert.deepEqual([...new Set(named)].toSorted(), Object.keys(volumes).toSorted());
  });

  it('have health checks, unless the image has one or no program for a check, or the service is meant to exit', () => {
    const without = Object.entries(services).filter(([, { healthcheck }]) => healthcheck === undefined);
    assert.deepEqual(
      without.map(([name]) => name),
      ['gateway', 'metrics-token', 'collector'],
    );
  });

  it('send traces to the port that the collector listens on', () => {
    const { receivers } = parse(textOf(`${COMPOSE_FOLDER}/collector.yaml`));
    assert.equal(receivers.otlp.protocols.http.endpoint, '0.0.0.0:4318');
    assert.equal(services.gateway.environment?.['OTEL_EXPORTER_OTLP_ENDPOINT'], COLLECTOR);
  });

  it('have no secret in compose.yaml', () => {
    const secrets = Object.values(services)
      .flatMap(({ environment = {} }) => Object.entries(environment))
      .filter(([name]) => /PASSWORD|TOKEN|KEY/.test(name));
    assert.deepEqual(
      secrets.filter(([, value]) => !/^\$\{\w+(:[?-].*)?\}$/.test(value)),
      [],
    );
    assert.equal(secrets.length, 6);
  });

  it('read exactly the environment variables that .env.example lists', () => {
    const variables = [...textOf(`${COMPOSE_FOLDER}/compose.yaml`).matchAll(/\$\{([A-Z_]+)/g)].map(([, name]) => name);
    const listed = [...textOf(`${COMPOSE_FOLDER}/.env.example`).matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name);
    assert.deepEqual([...new Set(variables)].toSorted(), listed.toSorted());
  });
});
