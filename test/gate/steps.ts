import { node24 } from '../agents/node';
import type { Runtime } from '../flaky/round';

/** One command of a run. */
export interface Step {
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The time after which the command is ended. */
  readonly minutes: number;
  /** Whether the steps behind it are worth nothing if it fails. */
  readonly isNeeded?: boolean;
  /** How mocha runs one file of this step alone, if the step runs mocha. */
  readonly alone?: Runtime;
}

const BUILT: readonly Step[] = [
  { name: 'check', command: ['npm', 'run', 'check'], minutes: 10, isNeeded: true },
  { name: 'build', command: ['npm', 'run', 'build'], minutes: 10, isNeeded: true },
];

/** Stories that tell most of what a client sees: calls, streams, money, failover, translation, sandboxes, pages. */
const EMBEDDED_STORIES = [
  'concurrency',
  'embeddings',
  'failover',
  'idempotency',
  'vendor-resources',
  'key-access',
  'money',
  'operator-story',
  'responses',
  'routing',
  'sandbox-lifecycle',
  'translation',
];
/** Stories whose calls pass Express Gateway's own router, as with `FAST_LANE=false`. */
const EXPRESS_STORIES = ['hello', 'forwarding', 'endings'];

const stories = (names: readonly string[]) => names.map((name) => `test/gateway/${name}.test.ts`);
const NO_REAL_STORES = ['--ignore', 'test/**/*.real.test.ts'];

/** Mocha on another Node or with other settings than `npm test`. */
function mocha(name: string, minutes: number, args: readonly string[], env = {}, node = process.execPath): Step {
  const command = [node, 'node_modules/mocha/bin/mocha.js', '--reporter', 'test/gate/reporter.cjs', '--parallel'];
  return { name, minutes, command: [...command, ...args], env, alone: { node, env } };
}

function script(name: string, minutes: number, ...args: readonly string[]): Step {
  return { name: [name, ...args].join(' '), minutes, command: ['npm', 'run', '--silent', name, '--', ...args] };
}

/** What every change must pass: `.ci/run`. */
export function gate(): readonly Step[] {
  return [
    ...BUILT,
    {
      name: 'npm test',
      command: ['npm', 'test', '--', '--times'],
      minutes: 40,
      alone: { node: process.execPath, env: {} },
    },
    mocha(
      'embedded stores, Node 24',
      15,
      ['--jobs', '2', ...stories(EMBEDDED_STORIES)],
      { STORES: 'embedded' },
      node24(),
    ),
    mocha("Express Gateway's router", 10, ['--jobs', '2', ...stories(EXPRESS_STORIES)], { FAST_LANE: 'false' }),
  ];
}

/** Everything: `npm run test:all`. */
export function all(seed: number): readonly Step[] {
  const slow = ['--config', 'test/slow.mocharc.cjs', '--jobs', '3'];
  return [
    ...BUILT,
    { name: `npm test, shuffled by ${seed}`, command: ['npm', 'test'], env: { SHUFFLE: String(seed) }, minutes: 40 },
    mocha('slow files, Node 24', 40, slow, {}, node24()),
    mocha(
      'embedded stores, Node 24',
      25,
      ['--jobs', '2', 'test/gateway/**/*.test.ts', ...NO_REAL_STORES],
      { STORES: 'embedded' },
      node24(),
    ),
    mocha("Express Gateway's router", 30, ['--jobs', '2', 'test/{gateway,long}/**/*.test.ts'], { FAST_LANE: 'false' }),
    script('agents', 30),
    mocha("every client's block of docs/clients.md", 15, ['test/agents/all-documents.ts']),
    script('fuzz', 8, '--minutes', '3', '--seed', String(seed)),
    script('attack', 8, '--minutes', '3', '--seed', String(seed)),
    script('simulation', 15),
    script('simulation', 15, '--allowances'),
    script('mutation', 40),
    script('mutation:vendor', 20),
    script('mutation:allowances', 30),
    script('chaos', 10, '--minutes', '3'),
    script('test:image', 15),
    script('rehearse', 25, 'quickstart'),
  ];
}
