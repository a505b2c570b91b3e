import { expect } from 'chai';
import { filesUnder, type Import, importsOf, resolveIn, textOf } from '../support/sources';

const ROOMS = [
  'core',
  'policies',
  'plugins',
  'cli',
  'console',
  'shapes',
  'conformance',
  'exports',
  'demo',
  'bench',
  'migrations',
  'test',
] as const;

/**
 * The folders of core and of the sandbox plugin in order. A file may import, types included, only from its own folder and those before it.
 * docs/architecture.md explains each folder.
 */
const ORDER: Readonly<Record<string, readonly string[]>> = {
  core: [
    'base',
    'storage',
    'http',
    'traces',
    'catalog',
    'protocols',
    'wire',
    'health',
    'events',
    'ledger',
    'accounts',
    'webhooks',
    'sign-in',
    'operators',
    'rollouts',
    'calls',
    'records',
    'configuration',
    'api',
    'gateway',
    'sockets',
    'serving',
  ],
  'plugins/sandbox': [
    'suppliers',
    'offerings',
    'lifecycle',
    'store',
    'service',
    'worker',
    'admission',
    'ports',
    'commands',
    'instance',
    'routes',
    '.',
  ],
};

/** The contract of suppliers. It is the only file of a plugin that driver authors, the conformance suite and `exports` may import. */
const SUPPLIER = 'plugins/sandbox/suppliers/supplier';

const files = [...ROOMS.flatMap((room) => filesUnder(room)), 'server.ts'].filter((path) =>
  /\.([cm]?ts|tsx)$/.test(path),
);
const known = new Set(files);

/** Returns whether a file assembles the parts, because such a file may import from several places. */
function isAssembly(path: string): boolean {
  if (['server.ts', 'policies/index.ts', 'cli/explain.ts'].includes(path)) return true;
  return /^(policies|plugins\/[^/]+)\/manifest\.ts$/.test(path);
}

/** Returns the part of the project that a file belongs to: `core`, `policies/x`, `plugins/x`, `cli` … */
function roomOf(path: string): string {
  const [first = '', second = ''] = path.split('/');
  return (first === 'policies' || first === 'plugins') && path.split('/').length > 2 ? `${first}/${second}` : first;
}

/** Returns the position of a file in the order of its part; undefined if the part has no order. */
function rankOf(path: string): { readonly room: string; readonly folder: string; readonly rank: number } | undefined {
  const room = Object.keys(ORDER).find((each) => path.startsWith(`${each}/`));
  if (room === undefined) return undefined;
  const [first = '', ...rest] = path.slice(room.length + 1).split('/');
  const name = first.replace(/\.ts$/, '');
  // A single file may have its own position, like a folder.
  const folder = rest.length === 0 && !ORDER[room]?.includes(name) ? '.' : name;
  return { room, folder, rank: ORDER[room]?.indexOf(folder) ?? -1 };
}

/** Returns why a file may not import one of a later folder; undefined if it may. */
function upward(from: string, to: string): string | undefined {
  const [own, other] = [rankOf(from), rankOf(to)];
  if (own === undefined || other === undefined || own.room !== other.room || own.folder === other.folder)
    return undefined;
  if (own.rank === -1) return `${own.folder} is no folder of the order: add it to ORDER in imports.test.ts`;
  if (own.rank > other.rank) return undefined;
  return `${other.folder} comes after ${own.folder} in ORDER: move what both need to a folder before both, or take only what is needed as an interface`;
}

/** Returns why a file of one part may not import one of another; undefined if it may. */
function objection(from: string, to: string): string | undefined {
  const [own, other] = [roomOf(from), roomOf(to)];
  if (own === other) return upward(from, to);
  if (from.startsWith('test/')) return undefined;
  // The bench starts the same real stores with the same starters.
  if (own === 'bench' && to.startsWith('test/support/')) return undefined;
  if (other === 'test') return 'nobody imports tests';
  if (other === 'exports') return 'exports is for packages outside: import the file itself';
  if (own === 'exports' || own === 'conformance')
    return other === 'core' || to.replace(/\.ts$/, '') === SUPPLIER
      ? undefined
      : `${own} knows core and the contract of suppliers`;
  if (other === 'migrations' && own !== 'core') return 'nobody imports migrations';
  if (isAssembly(from)) return undefined;
  if (own === 'core') return 'core knows none of the others';
  if (own === 'migrations') return other === 'core' ? undefined : 'a migration stands alone';
  if (own.startsWith('policies/')) return other === 'core' ? undefined : 'a policy knows core and itself';
  if (own.startsWith('plugins/')) return other === 'core' ? undefined : 'a plugin knows core and itself';
  if (other === 'shapes') return own === 'cli' || own === 'console' ? undefined : 'shapes are for what speaks HTTP';
  if (own === 'console' || other === 'console') return 'the page speaks HTTP only, and nobody imports it';
  if (own === 'demo') return other === 'core' ? undefined : 'the demo knows core';
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

/** Lists the cycles of imports, each as its files. */
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
  it('are found in many files, which shows that the search itself works', () => {
    expect(files.length).to.be.greaterThan(50);
    expect(importsWithin('policies/index.ts').map(({ target }) => target)).to.include('policies/failover/index.ts');
  });

  it('lead only to existing files', () => {
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

  it('stay within their part of the project, and so do imports of types', () => {
    const wrong = files.flatMap((path) =>
      importsWithin(path).flatMap(({ target }) => {
        const why = objection(path, target);
        return why === undefined ? [] : [`${path} imports ${target}: ${why}`];
      }),
    );
    expect(wrong).to.deep.equal([]);
  });

  it('have no cycles in core, policies and plugins, even if imports of types count', () => {
    const graph = new Map(
      files
        .filter((path) => /^(core|policies|plugins)\//.test(path))
        .map((path) => [path, importsWithin(path).map(({ target }) => target)]),
    );
    expect(cyclesOf(graph)).to.deep.equal([]);
  });

  it('are checked in every folder that the allowed order of folders lists', () => {
    const missing = Object.entries(ORDER).flatMap(([room, folders]) => {
      const there = new Set(
        files.map((path) => rankOf(path)).flatMap((rank) => (rank?.room === room ? [rank.folder] : [])),
      );
      return folders.filter((folder) => !there.has(folder)).map((folder) => `${room}/${folder}`);
    });
    expect(missing).to.deep.equal([]);
  });

  it('follow the order of folders that docs/architecture.md lists', () => {
    const [, core = '', sandbox = ''] = textOf('docs/architecture.md').split(
      /^#{2,3} (?:core|plugins\/sandbox|Who .*)$/m,
    );
    const rowsOf = (table: string) => [...table.matchAll(/^\| `([^`]+)` +\|/gm)].map(([, name = '']) => name);
    expect(rowsOf(core).map((name) => name.replace('core/', ''))).to.deep.equal(ORDER['core']);
    expect(rowsOf(sandbox).map((name) => (name === '*.ts' ? '.' : name.replace('.ts', '')))).to.deep.equal(
      ORDER['plugins/sandbox'],
    );
  });
});
