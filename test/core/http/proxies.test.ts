import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import { pino } from 'pino';
import type { LocatedProblem } from '../../../core/configuration/problems';
import { readProxies } from '../../../core/configuration/read-proxies';
import { warnOfUnnamedProxies } from '../../../core/http/proxies';

const pluginOf = (name: string, settings: object) => ({ plugin: { name }, settings });

function read({ system = {}, connections = {}, plugins = {} }: Record<string, object>) {
  const problems: LocatedProblem[] = [];
  const loaded = Object.entries(plugins).map(([name, settings]) => pluginOf(name, settings as object));
  const proxies = readProxies({ proxies: system, connections: { ...connections } } as never, loaded, problems);
  return { ...proxies, problems };
}

describe('the trusted proxies of system.config.yml', () => {
  it('default to none in front, with connections allowed from loopback and private ranges', () => {
    const { count, isProxy, problems } = read({});
    assert.deepEqual([count, problems], [0, []]);
    for (const address of ['127.0.0.1', '::1', '10.1.2.3', '::ffff:192.168.1.1', 'fd00::1'])
      assert.ok(isProxy(address));
    for (const address of ['192.0.2.1', '2001:db8::1', '', 'nonsense']) assert.ok(!isProxy(address));
  });

  it('may stand under their old names', () => {
    const { count, isProxy, problems } = read({
      plugins: { console: { proxies: 2 } },
      connections: { proxies: ['192.0.2.0/24'] },
    });
    assert.deepEqual([count, isProxy('192.0.2.7'), isProxy('10.0.0.1'), problems], [2, true, false, []]);
  });

  it('may stand under both names if both have the same value', () => {
    const { count, problems } = read({ system: { count: 2 }, plugins: { console: { proxies: 2 } } });
    assert.deepEqual([count, problems], [2, []]);
  });

  it('are refused at the old name if the two values differ', () => {
    const { problems } = read({
      system: { count: 1, addresses: ['192.0.2.1'] },
      plugins: { console: { proxies: 0 } },
      connections: { proxies: [] },
    });
    assert.deepEqual(
      problems.map(({ path }) => path.join('.')),
      ['plugins.console.proxies', 'connections.proxies'],
    );
    assert.match(problems[0]?.message ?? '', /old name of proxies\.count/);
  });

  it('are refused if they are not addresses', () => {
    const { problems } = read({ system: { addresses: ['10.0.0.0/8', '10.0.0.0/40', '999.1.1.1', '1:2'] } });
    assert.deepEqual(
      problems.map(({ path }) => path.join('.')),
      ['proxies.addresses.1', 'proxies.addresses.2', 'proxies.addresses.3'],
    );
  });

  it('are not confused with a setting of another plugin that is called proxies', () => {
    assert.equal(read({ plugins: { other: { proxies: 3 } } }).count, 0);
  });
});

describe('the warning of a proxy that is not configured', () => {
  let nowMs: number;
  let lines: { peer: string; msg: string }[];
  let server: EventEmitter;
  const watch = (count = 0) => {
    nowMs = 0;
    lines = [];
    server = new EventEmitter();
    const log = pino({}, { write: (text: string) => lines.push(JSON.parse(text)) });
    const { isProxy } = read({});
    warnOfUnnamedProxies(server as Server, { count, isProxy }, log, () => nowMs);
  };
  const ask = (remoteAddress: string, headers: object = { 'x-forwarded-for': '192.0.2.1' }) =>
    server.emit('request', { headers, socket: { remoteAddress } });

  it('names the setting, once an hour', () => {
    watch();
    for (let request = 0; request < 100; request += 1) ask('10.0.0.1');
    nowMs = 3_599_999;
    ask('10.0.0.1');
    assert.deepEqual(
      lines.map(({ peer }) => peer),
      ['10.0.0.1'],
    );
    assert.match(lines[0]?.msg ?? '', /proxies\.count in system\.config\.yml is 0/);
    nowMs = 3_600_000;
    ask('10.0.0.1');
    assert.equal(lines.length, 2);
  });

  it('is not logged for clients that send the header themselves, or do not send it', () => {
    watch();
    ask('192.0.2.1');
    ask('10.0.0.1', {});
    assert.deepEqual(lines, []);
  });

  it('is not logged if proxies are configured', () => {
    watch(1);
    ask('10.0.0.1');
    assert.deepEqual(lines, []);
  });
});
