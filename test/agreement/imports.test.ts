import { expect } from 'chai';
import { filesUnder, type Import, importsOf, resolveIn, textOf } from '../support/sources';

const ROOMS = ['core', 'policies', 'plugins', 'cli', 'console', 'demo', 'bench', 'migrations', 'test'] as const;

const files = [...ROOMS.flatMap((room) => filesUnder(room)), 'server.ts'].filter((path) =>
  /\.([cm]?ts|tsx)$/.test(path),
);
const known = new Set(files);

/** The files that put the pieces together: they may name things from several places. */
function isAssembly(path: string): boolean {
  return path === 'server.ts' || path === 'policies/index.ts' || /^(policies|plugins\/[^/]+)\/manifest\.ts$/.test(path);
}

/** `core`, `policies/x`, `plugins/x`, `cli` … */
function roomOf(path: string): string {
  const [first = '', second = ''] = path.split('/');
  return (first === 'policies' || first === 'plugins') && path.split('/').length > 2 ? `${first}/${second}` : first;
}

/** Why a file of one room may not import one of another; undefined when it may. */
function objection(from: string, to: string): string | undefined {
  const [own, other] = [roomOf(from), roomOf(to)];
  if (own === other) return undefined;
  if (from.startsWith('test/')) return undefined;
  // The bench starts the same real stores, with the same starters.
  if (own === 'bench' && to.startsWith('test/support/')) return undefined;
  if (other === 'test' && !/^test\/contract\/.*-conformance$/.test(to.replace(/\.ts$/, '')))
    return 'nobody imports tests';
  if (other === 'migrations' && own !== 'core') return 'nobody imports migrations';
  if (isAssembly(from)) return undefined;
  if (own === 'core') return 'core knows none of the others';
  if (own === 'migrations') return other === 'core' ? undefined : 'a migration stands alone';
  if (own.startsWith('policies/')) return other === 'core' ? undefined : 'a policy knows core and itself';
  if (own.startsWith('plugins/')) return other === 'core' ? undefined : 'a plugin knows core and itself';
  if (own === 'console' || other === 'console') return 'the page speaks HTTP only, and nobody imports it';
  if (own === 'cli') return other === 'core' ? undefined : 'the CLI speaks HTTP, and knows core for what works offline';
  if (other.startsWith('policies') || other.startsWith('plugins')) return `${own} does not know how a call is served`;
  return undefined;
}

function importsWithin(path: string): readonly (Import & { readonly target: string })[] {
  return importsOf(path, textOf(path)).flatMap((each) => {
    const target = each.file === undefined ? undefined : resolveIn(known, each.file);
    return target === undefined ? [] : [{ ...each, target }];
  });
}

/** Rounds of imports that are left when the program runs, each as the files it goes through. */
function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (node: string, path: readonly string[]): void => {
    const at = path.indexOf(node);
    if (at !== -1) cycles.push([...path.slice(at), node].join(' -> '));
    if (at !== -1 || done.has(node)) return;
    for (const next of graph.get(node) ?? []) visit(next, [...path, node]);
    done.add(node);
  };
  for (const node of graph.keys()) visit(node, []);
  return cycles;
}

describe('imports', () => {
  it('are found in more than a few files', () => {
    expect(files.length).to.be.greaterThan(50);
    expect(importsWithin('policies/index.ts').map(({ target }) => target)).to.include('policies/failover/index.ts');
  });

  it('lead only to files that are there', () => {
    const lost = files
      .filter((path) => !path.startsWith('test/'))
      .flatMap((path) =>
        importsOf(path, textOf(path))
          .filter(
            ({ file }) =>
              file !== undefined && !/\.(json|mjs|lua|css)$/.test(file) && resolveIn(known, file) === undefined,
          )
          .map(({ from }) => `${path}: ${from}`),
      );
    expect(lost).to.deep.equal([]);
  });

  it('stay in their room, types too', () => {
    const wrong = files.flatMap((path) =>
      importsWithin(path).flatMap(({ target }) => {
        const why = objection(path, target);
        return why === undefined ? [] : [`${path} imports ${target}: ${why}`];
      }),
    );
    expect(wrong).to.deep.equal([]);
  });

  it('never go round in core, policies and plugins', () => {
    const graph = new Map(
      files
        .filter((path) => /^(core|policies|plugins)\//.test(path))
        .map((path) => [
          path,
          importsWithin(path)
            .filter((each) => !each.isTypeOnly)
            .map(({ target }) => target),
        ]),
    );
    expect(cyclesOf(graph)).to.deep.equal([]);
  });

  describe('this test itself', () => {
    for (const [from, to, allowed] of [
      ['core/call.ts', 'core/http.ts', true],
      ['core/call.ts', 'policies/failover/index.ts', false],
      ['core/call.ts', 'plugins/usage/index.ts', false],
      ['policies/failover/index.ts', 'core/call.ts', true],
      ['policies/failover/index.ts', 'policies/failover/decide.ts', true],
      ['policies/failover/index.ts', 'policies/sse-relay/index.ts', false],
      ['policies/failover/index.ts', 'policies/index.ts', false],
      ['policies/failover/index.ts', 'plugins/usage/index.ts', false],
      ['policies/index.ts', 'policies/failover/index.ts', true],
      ['plugins/usage/index.ts', 'plugins/models/index.ts', false],
      ['plugins/usage/index.ts', 'policies/failover/decide.ts', false],
      ['plugins/usage/manifest.ts', 'core/express-gateway.ts', true],
      ['server.ts', 'core/call.ts', true],
      ['core/call.ts', 'test/support/until.ts', false],
      ['bench/rig.ts', 'test/support/until.ts', true],
      ['bench/rig.ts', 'policies/failover/decide.ts', false],
      ['cli/keys/create.ts', 'core/money.ts', true],
      ['cli/keys/create.ts', 'plugins/operator/index.ts', false],
      ['console/pages/keys.tsx', 'console/api.ts', true],
      ['console/pages/keys.tsx', 'core/money.ts', false],
      ['plugins/console/index.ts', 'console/api.ts', false],
      ['test/core/call.test.ts', 'policies/failover/decide.ts', true],
    ] as const) {
      it(`${allowed ? 'lets' : 'does not let'} ${from} import ${to}`, () =>
        expect(objection(from, to) === undefined).to.equal(allowed));
    }

    it('reads every way of writing an import', () => {
      const text = [
        `import a from './a';`,
        `import type { B } from './b';`,
        `import { type C, type D } from './c';`,
        `import d, { type E } from './d';`,
        `import {\n  type F,\n  g,\n} from './f';`,
        `import './h'; import './m';`,
        `export * from './i';`,
        `export { j } from './j';`,
        `const k = require('./k');`,
        `const l = await import('./l');`,
        `import { readFileSync } from 'node:fs';`,
      ].join('\n');
      const read = importsOf('core/x.ts', text).map(({ file, isTypeOnly }) => `${file}${isTypeOnly ? ' (type)' : ''}`);
      expect(read).to.have.members([
        ...['a', 'd', 'f', 'h', 'i', 'j', 'k', 'l', 'm'].map((name) => `core/${name}`),
        'core/b (type)',
        'core/c (type)',
        'undefined',
      ]);
    });

    it('finds a round of imports, and none where two ways meet', () => {
      const round = new Map([
        ['a', ['b']],
        ['b', ['c']],
        ['c', ['a']],
      ]);
      expect(cyclesOf(round)).to.deep.equal(['a -> b -> c -> a']);
      expect(
        cyclesOf(
          new Map([
            ['a', ['b', 'c']],
            ['b', ['d']],
            ['c', ['d']],
            ['d', []],
          ]),
        ),
      ).to.deep.equal([]);
    });
  });
});
