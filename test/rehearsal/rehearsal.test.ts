import { expect } from 'chai';
import { CommanderError } from 'commander';
import { acquireLines, archiveFor, httpProxyIn } from './apt';
import { bridgesOf } from './bridges';
import { hierarchiesIn } from './cgroup';
import { commandsFor } from './commands';
import { failuresIn } from './failures';
import { readOptions } from './options';
import { readyIn } from './quickstart-output';
import { hasFailed, type RunReport } from './report';
import { type Machine, unmetRequirement } from './requirements';
import { environmentOf } from './settings';
import { tableOf } from './table';

describe("a rehearsal's arguments", () => {
  it('ask for one run of both commands when there are none', () => {
    const options = readOptions([]);
    expect(options).to.deep.equal({ times: 1, ci: false, json: false });
    expect(commandsFor(options).map(({ name }) => name)).to.deep.equal(['npm run quickstart', 'npm test']);
  });

  it('choose one of the two commands with --only, or .ci/run with --ci', () => {
    const chosen = (...words: string[]) => commandsFor(readOptions(words)).map(({ name }) => name);
    expect(chosen('--only', 'quickstart')).to.deep.equal(['npm run quickstart']);
    expect(chosen('--only', 'test')).to.deep.equal(['npm test']);
    expect(chosen('--ci')).to.deep.equal(['.ci/run']);
    expect(readOptions(['--times', '20', '--json'])).to.include({ times: 20, json: true });
  });

  for (const words of [
    ['--times', '0'],
    ['--times', '1.5'],
    ['--times', 'often'],
    ['--only', 'bench'],
    ['--ci', '--only', 'test'],
    ['--fast'],
    ['more'],
  ]) {
    it(`are refused when they are ${words.join(' ')}`, () =>
      expect(() => readOptions(words, () => undefined)).to.throw(CommanderError));
  }
});

describe('a machine that runs the rehearsal', () => {
  const debian: Machine = { uid: 0, osRelease: 'ID=debian\nVERSION_CODENAME="bookworm"\n', has: () => true };

  it('must be a Debian, run as root and have debootstrap', () => {
    expect(unmetRequirement(debian)).to.equal(undefined);
    expect(unmetRequirement({ ...debian, osRelease: 'ID=fedora\n' })).to.match(/needs Debian/);
    expect(unmetRequirement({ ...debian, osRelease: '' })).to.match(/needs Debian/);
    expect(unmetRequirement({ ...debian, uid: 1000 })).to.match(/needs root/);
    const without = { ...debian, has: (program: string) => program !== 'debootstrap' };
    expect(unmetRequirement(without)).to.match(/"debootstrap".*apt-get install debootstrap/);
  });

  it('provides the archive of its own release', () => {
    const targets = [
      'https://tools.example/apt stable stable main',
      'http://archive.example/debian/ bookworm-updates bookworm-updates main',
      'http://archive.example/debian/ bookworm bookworm contrib',
      'mirror+file:/etc/apt/mirrors.list bookworm bookworm main',
      'http://archive.example/debian/ bookworm stable main',
    ].join('\n');
    expect(archiveFor('bookworm', targets)).to.equal('http://archive.example/debian/');
    expect(archiveFor('trixie', targets)).to.equal(undefined);
  });

  it('provides the settings by which apt reaches its sources, and no others', () => {
    const dump = 'APT::Hook "/bin/absent";\nAcquire::http::Proxy "http://proxy.example:3128";\nAcquire::Retries "3";\n';
    expect(acquireLines(dump)).to.equal('Acquire::http::Proxy "http://proxy.example:3128";\nAcquire::Retries "3";\n');
    expect(httpProxyIn(dump)).to.equal('http://proxy.example:3128');
    expect(httpProxyIn('Acquire::http::Proxy "";\n')).to.equal(undefined);
  });

  it('provides the environment variables for network access, and no others', () => {
    const passed = {
      HTTPS_PROXY: 'http://proxy.example:3128',
      NODE_EXTRA_CA_CERTS: '/etc/ssl/own.pem',
      npm_config_registry: 'https://registry.example',
    };
    const kept = {
      npm_config_local_prefix: '/elsewhere',
      OPENAI_API_KEY: 'sk-1',
      PATH: '/elsewhere',
      NODE_OPTIONS: '-r x',
    };
    expect(environmentOf({ ...passed, ...kept }, '/opt/node/bin/node', '/home-of-user')).to.deep.equal({
      ...passed,
      PATH: '/opt/node/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/home-of-user',
      LANG: 'C.UTF-8',
    });
  });
});

describe('the cleanup of a rehearsal', () => {
  it('removes a group below every mounted cgroup hierarchy, once each', () => {
    const mountinfo = [
      '22 27 0:20 / /proc rw,relatime shared:5 - proc proc rw',
      '30 29 0:25 / /sys/fs/cgroup/cpu rw,nosuid shared:9 - cgroup cgroup rw,cpu',
      '31 29 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw',
      '44 43 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu',
      '45 43 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro',
    ].join('\n');
    expect(hierarchiesIn(mountinfo)).to.deep.equal(['/sys/fs/cgroup/cpu', '/sys/fs/cgroup/unified']);
  });

  it('removes the bridges of its own Docker engines, and no others', () => {
    const networks = '\u0000{"name":"sandboxes","id":"0123456789abcdef0123","networkType":"bridge"}';
    const interfaces = ['lo', 'eth0', 'docker0', 'br-0123456789ab', 'br-ffffffffffff'];
    expect(bridgesOf(networks, interfaces)).to.deep.equal(['br-0123456789ab']);
  });
});

describe('the quick start in a rehearsal', () => {
  const guide = [
    'Tollgate is ready.',
    '',
    '  calls    http://127.0.0.1:15001',
    '  console  http://127.0.0.1:15001/console/sign-in#token=x',
    '  API key  sk-svc-1',
    '           kept for the next start in quickstart.json',
    '',
    'Ctrl-C ends both programs.',
    '',
  ].join('\n');

  it('is ready when it has printed its guide to the end', () => {
    expect(readyIn(`added 400 packages\n${guide}`)).to.deep.equal({ url: 'http://127.0.0.1:15001', key: 'sk-svc-1' });
    expect(readyIn(guide.slice(0, -20))).to.equal(undefined);
  });
});

describe("a rehearsal's report", () => {
  const output = [
    '  1 passing (48ms)',
    '  3 failing',
    '',
    '  1) outer',
    '       fails: at once:',
    '',
    '      AssertionError [ERR_ASSERTION]: 1 == 2',
    '      at Context.<anonymous> (a.test.js:2:88)',
    '',
    '  2) outer',
    '       inner',
    '         "before all" hook: hook for "never runs":',
    '     Error: no',
    '',
    '  3) object:',
    '     Error: x',
    '[mocha] global teardown failed:',
    'Error: EBUSY',
    '',
  ].join('\n');

  it('names the tests and fixtures that mocha lists as failed', () => {
    expect(failuresIn(output)).to.deep.equal([
      'outer fails: at once',
      'outer inner "before all" hook: hook for "never runs"',
      'object',
      'global teardown: Error: EBUSY',
    ]);
    expect(failuresIn('  1 passing (48ms)\n')).to.deep.equal([]);
  });

  const runs: readonly RunReport[] = [
    {
      steps: [
        { step: 'debootstrap', seconds: 47.04, failures: [] },
        { step: 'npm test', seconds: 600, problem: 'exit status 1', failures: ['outer fails'] },
      ],
    },
    { steps: [{ step: 'npm test', seconds: 612.26, failures: [] }] },
  ];

  it('has a row for each step, a column for each run and a line for each failure', () => {
    expect(tableOf(runs)).to.equal(
      [
        '                      run 1    run 2',
        'debootstrap          47.0 s        -',
        'npm test     600.0 s failed  612.3 s',
        'run 1, npm test: exit status 1',
        '  outer fails',
        '',
      ].join('\n'),
    );
  });

  it('fails when a step has failed', () => {
    const report = { commit: 'c', debian: 'bookworm', node: '20.19.0' };
    expect(hasFailed({ ...report, runs })).to.equal(true);
    expect(hasFailed({ ...report, runs: runs.slice(1) })).to.equal(false);
  });
});
