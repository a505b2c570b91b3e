/**
 * `npm run agents`: runs the programs that people use, unmodified, with a gateway and a scripted vendor. It prints what works and compares the bill
 * of every run with the vendor's charge. Exit status 1 when something fails that docs/clients.md promises.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import { installAgents } from '../support/agents';
import { positive, runProgram } from '../support/program';
import { type Cell, type Desk, openDesk, tryOut } from './cell';
import { CLIENTS } from './clients';
import { type Client, UPSTREAMS, type Upstream } from './clients/client';
import { clientAt, TRANSLATED } from './clients/translated';
import { FEATURES, type Feature } from './features';
import { node24 } from './node';
import { cellName, cellsOf, clientsPage, PAGE, promised } from './page';
import { renewPins } from './renew';

interface Options {
  readonly only?: string;
  readonly features?: string;
  readonly upstream?: Upstream;
  readonly desks: number;
  readonly json: boolean;
  readonly write: boolean;
  readonly renew: boolean;
}

const command = new Command('npm run agents --')
  .description('Runs the programs that people use against a gateway with a scripted vendor.')
  .option('--only <names>', 'only clients whose id contains one of these, separated by commas')
  .option('--features <names>', 'only these features, separated by commas')
  .addOption(
    new Option('--upstream <protocol>', 'the upstream speaks this alone; clients of other protocols').choices(
      UPSTREAMS,
    ),
  )
  .option('--desks <n>', 'how many programs run at a time, each with its own gateway', positive, 2)
  .option('--json', 'print JSON instead of a table', false)
  .option('--write', 'write docs/clients.md; cells that are not tried stay as they are', false)
  .option('--renew', 'pin the newest versions in test/agents/package.json, and end', false)
  .addHelpText('after', `\nClients:\n${CLIENTS.map(({ id }) => `  ${id}`).join('\n')}`);

/** The variable that marks the process without a network except loopback. */
const INSIDE = 'AGENTS_WITHOUT_NETWORK';

async function main(): Promise<void> {
  const options = command.parse().opts<Options>();
  if (options.renew) return renewPins();
  const all =
    options.write && options.upstream === undefined ? [...CLIENTS, ...TRANSLATED] : clientsAt(options.upstream);
  const clients = chosen(all, ({ id }) => parts(options.only).some((part) => id.includes(part)), options.only);
  const features = chosen(FEATURES, ({ name }) => parts(options.features).includes(name), options.features);
  if (process.env[INSIDE] === undefined) {
    await installAgents((line) => process.stderr.write(`${line}\n`), 'all');
    node24();
    process.exitCode = await runWithoutNetwork();
    return;
  }
  process.env['STORES'] ??= 'embedded';
  const page = readFileSync(PAGE, 'utf8');
  const before = promised(page);
  const cells: Cell[] = [];
  for (const upstream of [undefined, ...UPSTREAMS]) {
    const own = clients.filter((client) => client.upstream === upstream);
    if (own.length > 0) cells.push(...(await tryAll(own, features, options.desks, upstream)));
  }
  if (options.write) writeFileSync(PAGE, clientsPage([...cells, ...cellsLeft(page, cells)]));
  report(clients, cells, options.json);
  const broken = cells.filter((cell) => cell.state !== 'works' && before.has(cellName(cell.client, cell.feature)));
  if (broken.length > 0) {
    process.stderr.write(
      `docs/clients.md promises what failed: ${broken.map(({ client, feature }) => cellName(client, feature)).join(', ')}\n`,
    );
    process.exitCode = 1;
  }
}

/** Returns the document's cells that were not tested in this run. */
function cellsLeft(page: string, tried: readonly Cell[]): readonly Cell[] {
  const names = new Set(tried.map(({ client, feature }) => cellName(client, feature)));
  return cellsOf(page).filter(({ client, feature }) => !names.has(cellName(client, feature)));
}

function clientsAt(upstream: Upstream | undefined): readonly Client[] {
  return upstream === undefined ? CLIENTS : CLIENTS.flatMap((client) => clientAt(upstream, client) ?? []);
}

function chosen<T>(all: readonly T[], isChosen: (each: T) => boolean, names: string | undefined): readonly T[] {
  const found = names === undefined ? all : all.filter(isChosen);
  if (found.length === 0) command.error(`nothing is named "${names}"; see --help`);
  return found;
}

function parts(names: string | undefined): readonly string[] {
  return (names ?? '').split(',').map((name) => name.trim());
}

/**
 * Runs this program again without a network except loopback, and returns its exit code. If a process cannot drop its network, only a refusing proxy
 * keeps the programs from it.
 */
async function runWithoutNetwork(): Promise<number> {
  const again = [...process.execArgv, ...process.argv.slice(1)];
  const env = { ...process.env, [INSIDE]: '1' };
  const inside = ['--net', '--', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', process.execPath, ...again];
  const [program, args] = canLeaveNetwork() ? ['unshare', inside] : [process.execPath, again];
  const child = spawn(program, args, { stdio: 'inherit', env });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill(signal));
  const [code] = (await once(child, 'close')) as [number | null];
  return code ?? 1;
}

function canLeaveNetwork(): boolean {
  try {
    execFileSync('unshare', ['--net', '--', 'ip', 'link', 'set', 'lo', 'up'], { stdio: 'ignore' });
    return true;
  } catch {
    process.stderr.write(
      'The programs are kept from the network by a proxy alone: unshare --net needs root, and ip.\n',
    );
    return false;
  }
}

/** Runs all cells. Each gateway takes the next cell when it is free. */
async function tryAll(
  clients: readonly Client[],
  features: readonly Feature[],
  count: number,
  upstream: Upstream | undefined,
): Promise<readonly Cell[]> {
  const left = clients.flatMap((client) => features.map((feature) => ({ client, feature })));
  const cells: Cell[] = [];
  const models = [...new Set(CLIENTS.map(({ model }) => model))];
  const work = async (desk: Desk) => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const cell = await tryOut(desk, next.client, next.feature);
      cells.push(cell);
      tell(cell);
    }
  };
  const desks = await Promise.all(Array.from({ length: count }, () => openDesk(models, upstream)));
  try {
    await Promise.all(desks.map(work));
  } finally {
    await Promise.all(desks.map((desk) => desk.close()));
  }
  return cells;
}

function tell({ client, feature, state, seconds, reasons }: Cell): void {
  const word = state === 'lacks' ? '–' : state;
  process.stderr.write(
    `  ${client.padEnd(26)}${feature.padEnd(18)}${word.padEnd(8)}${seconds} s  ${reasons.join('; ')}\n`,
  );
}

function report(clients: readonly Client[], cells: readonly Cell[], asJson: boolean): void {
  const ordered = clients.flatMap(({ id }) =>
    FEATURES.flatMap(({ name }) => cells.filter(({ client, feature }) => client === id && feature === name)),
  );
  if (asJson) {
    process.stdout.write(`${JSON.stringify(ordered, null, 2)}\n`);
    return;
  }
  for (const { id } of clients) {
    const own = ordered.filter(({ client }) => client === id);
    const named = (state: Cell['state']) => own.filter((cell) => cell.state === state).map(({ feature }) => feature);
    if (own.length === 0) continue;
    const [works, fails, lacks] = [named('works'), named('fails'), named('lacks')];
    process.stdout.write(`${id.padEnd(24)}works: ${works.join(', ') || '–'}\n`);
    if (fails.length > 0) process.stdout.write(`${' '.repeat(24)}fails: ${fails.join(', ')}\n`);
    if (lacks.length > 0) process.stdout.write(`${' '.repeat(24)}lacks: ${lacks.join(', ')}\n`);
  }
  for (const { client, feature, reasons, output } of ordered.filter(({ state }) => state === 'fails')) {
    process.stdout.write(
      `\n${cellName(client, feature)}\n  ${reasons.join('\n  ')}\n${(output ?? '').slice(-2_000)}\n`,
    );
  }
}

void runProgram(main);
