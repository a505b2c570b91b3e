/** `npm run bench -- <scenarios>`: starts the required services, runs the measurements, prints one table per scenario, and stops the services. */
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { describeMachine, describeVersions } from './machine';
import { type Rig, withRig } from './rig';
import { attempt, type Outcome, type Scenario, type Settings } from './scenario';
import { SCENARIOS } from './scenarios';
import { SUBJECTS } from './subjects';
import { CASE_MARK, type JudgedTarget, judgeTargets, type Row, render, summarise } from './table';

const FALLBACK: Settings = {
  rounds: 5,
  seconds: 5,
  warmupSeconds: 10,
  connections: 32,
  bodyBytes: 20_000_000,
  calls: 5,
  streams: 200,
  events: 200,
  gapMs: 20,
  idleStreams: 2_000,
  stalledStreams: 8,
  records: 1_000_000,
  pages: 20,
  sandboxes: 1_000,
};

interface Options extends Partial<Settings> {
  readonly subjects?: string[];
  readonly node: string;
  readonly build: boolean;
  readonly json?: string;
  readonly cpuProf?: string;
  readonly before?: string;
}

interface Report {
  readonly scenario: string;
  readonly settings: Partial<Settings>;
  readonly rows: readonly Row[];
  readonly targets: readonly JudgedTarget[];
  readonly rounds: Outcome['rounds'];
}

function commandLine(): Command {
  const list = SCENARIOS.map(({ name, summary }) => `  ${name.padEnd(8)} ${summary}`).join('\n');
  const subjects = SUBJECTS.map(({ name, summary }) => `  ${name.padEnd(16)} ${summary}`).join('\n');
  return new Command('npm run bench --')
    .description('Measures the whole pipeline, interleaved round by round with what it is compared to.')
    .addArgument(
      new Argument('[scenarios...]', 'which to run; all of them without').choices(SCENARIOS.map(({ name }) => name)),
    )
    .option('--subjects <names>', 'compare only these, separated by commas', subjectNames)
    .option('--rounds <n>', 'rounds; the table shows their median and range', positive)
    .option(
      '--seconds <n>',
      'length of a round for each subject; idle, start: of what is measured; kill: of the load',
      positive,
    )
    .option('--warmup-seconds <n>', 'length of the uncounted run before the first round', number)
    .option('--connections <n>', 'connections of wrk; kill: clients', positive)
    .option('--body-bytes <n>', 'body: size of a body', positive)
    .option('--calls <n>', 'body, sandbox: calls of a round, one after the other; records: calls of a round', positive)
    .option('--streams <n>', 'stream: streams at once', positive)
    .option('--events <n>', 'stream: events of a stream', positive)
    .option('--gap-ms <n>', 'stream: time between two events', positive)
    .option('--idle-streams <n>', 'stream: idle streams at once', positive)
    .option('--stalled-streams <n>', 'stream: callers that stop reading', positive)
    .option('--records <n>', 'usage: usage records there are', positive)
    .option('--pages <n>', 'usage: pages of each kind in a round', positive)
    .option('--sandboxes <n>', 'sandbox: idle sandboxes', positive)
    .addOption(
      new Option('--node <binary>', 'the Node that runs the subjects')
        .env('NODE_BINARY')
        .default(process.execPath, 'this one'),
    )
    .option('--no-build', 'measure what is in dist instead of building first')
    .option('--before <folder>', 'measure another checkout of Tollgate, built, as tollgate-before')
    .option('--cpu-prof <folder>', 'leave a CPU profile of every Node program there; such metrics are not comparable')
    .option(
      '--json <file>',
      'write all metrics, of each round too, into this file; - for standard output, without tables',
    )
    .addHelpText(
      'after',
      `\nScenarios:\n${list}\n\nSubjects:\n${subjects}\n\nProgress goes to standard error. Exit status: 0, or 1 when a round failed or a subject other\nthan portkey and those with workers could not be started. A missed target is shown, and is no failure.`,
    );
}

function number(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < 0)
    throw new InvalidArgumentError('expected a number of 0 or more.');
  return value;
}

function positive(text: string): number {
  const value = number(text);
  if (value === 0) throw new InvalidArgumentError('not above 0.');
  return value;
}

function subjectNames(text: string): string[] {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !SUBJECTS.some((subject) => subject.name === name));
  if (unknown.length > 0) {
    throw new InvalidArgumentError(
      `unknown subject ${unknown.join(', ')}; expected ${SUBJECTS.map(({ name }) => name).join(', ')}.`,
    );
  }
  return names;
}

async function main(): Promise<void> {
  const command = commandLine().parse();
  const options = command.opts<Options>();
  const names = command.processedArgs[0] as string[];
  const chosen = names.length === 0 ? SCENARIOS : SCENARIOS.filter(({ name }) => names.includes(name));
  const node = options.node.includes('/') ? resolve(options.node) : options.node;
  const progress = (line: string) => process.stderr.write(`${new Date().toTimeString().slice(0, 8)} ${line}\n`);
  const machine = describeMachine();
  const versions = describeVersions(node);
  const profileFolder = options.cpuProf === undefined ? undefined : resolve(options.cpuProf);
  const before = options.before === undefined ? undefined : resolve(options.before);
  const isQuiet = options.json === '-';
  if (!isQuiet) process.stdout.write(`${describe({ ...machine })}\n${describe(versions)}\n`);
  const reports: Report[] = [];
  await withRig({ node, build: options.build, before, profileFolder, progress }, async (rig) => {
    for (const scenario of chosen) {
      const { report, text } = await runScenario(rig, scenario, options);
      Object.assign(versions, report.versions);
      reports.push(report);
      if (!isQuiet) process.stdout.write(`\n${text}\n`);
    }
  });
  const result = JSON.stringify({ at: new Date().toISOString(), machine, versions, reports }, undefined, 2);
  if (isQuiet) process.stdout.write(`${result}\n`);
  else if (options.json !== undefined) writeFileSync(options.json, `${result}\n`);
  if (reports.some(({ rows }) => rows.some(hasFailed))) process.exitCode = 1;
}

async function runScenario(
  parent: Rig,
  scenario: Scenario,
  options: Options,
): Promise<{ report: Report & Pick<Outcome, 'versions'>; text: string }> {
  const rig = parent.scope();
  const settings: Settings = { ...FALLBACK, ...scenario.defaults, ...given(options) };
  const used = Object.fromEntries(Object.keys(scenario.defaults).map((key) => [key, settings[key as keyof Settings]]));
  rig.options.progress(`${scenario.name}: ${describe(used)}`);
  const subjects = SUBJECTS.filter(
    (subject) =>
      scenario.includes(subject) &&
      (subject.only?.includes(scenario.name) ?? true) &&
      (!subject.name.endsWith('-before') || options.before !== undefined) &&
      (options.subjects?.includes(subject.name) ?? true),
  );
  try {
    const layout = scenario.layout(settings);
    const result = await attempt(rig, () => scenario.run(rig, subjects, settings));
    const outcome = 'value' in result ? result.value : nothing(scenario, result.failure);
    const measured = new Set(outcome.rounds.flatMap((round) => Object.keys(round)));
    const hasCases = (name: string) => [...measured].some((row) => row.startsWith(name + CASE_MARK));
    const first = subjects.map(({ name }) => name).filter((name) => measured.has(name) || !hasCases(name));
    const names = [...new Set([...first, ...measured, ...Object.keys(outcome.unavailable)])];
    const rows = summarise(layout, outcome.rounds, names, outcome.unavailable);
    const targets = judgeTargets(layout, rows);
    const title = `${scenario.name}: ${scenario.summary} (${describe(used)})`;
    const { rounds, versions } = outcome;
    return {
      report: { scenario: scenario.name, settings: used, rows, targets, rounds, versions },
      text: `${title}\n${render(layout, rows, targets)}`,
    };
  } finally {
    await rig.stop();
  }
}

function given(options: Options): Partial<Settings> {
  const names = Object.keys(FALLBACK) as (keyof Settings)[];
  return Object.fromEntries(names.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])));
}

/** Returns the outcome of a scenario that could not start. The remaining scenarios still run. */
function nothing({ name }: Scenario, failure: string): Outcome {
  return { rounds: [], unavailable: { [name]: failure }, versions: {} };
}

/** The names of measured programs whose absence is no failure: other gateways that are not installed here, and Tollgate versions without workers. */
const MAY_BE_MISSING = ['portkey', 'tollgate-workers', 'worker'];

function hasFailed({ subject, problems, isMissing }: Row): boolean {
  return isMissing ? !MAY_BE_MISSING.includes(subject) : problems.length > 0;
}

function describe(facts: Readonly<Record<string, unknown>>): string {
  return Object.entries(facts)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ');
}

main().catch((error: unknown) => {
  if (error instanceof Error && error.name === 'AbortError') return;
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});
