import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Argument, type Command } from 'commander';
import type { Configuration } from '../core/configuration/configuration';
import { changesBetween, configurationFacts, type FactChange } from '../core/configuration/configuration-facts';
import { ConfigurationError, type ConfigurationProblem, problemText } from '../core/configuration/yaml-file';
import { type LoadedPlugins, loadPlugins } from '../core/serving/load-plugins';
import { publishedGatewaySchema, publishedSystemSchema } from '../core/serving/published-schema';
import { validateConfiguration } from '../core/serving/validate-configuration';
import type { Answers } from '../shapes/answers';
import type { Client, Environment } from './client';
import type { Session, Verb } from './command';
import { Failure, Refusal, UsageError } from './failure';
import { type Columns, confirm, type Output, same, showList, showOne, showText } from './output';

/** Returns the folder of the YAML files: the given one, otherwise TOLLGATE_CONFIG_DIR, otherwise the current folder. */
export function folderOf(given: string | undefined, environment: Environment): string {
  return given ?? (environment['TOLLGATE_CONFIG_DIR'] || '.');
}

/** Returns the valid configuration of a folder. @throws Failure that lists all errors of the configuration */
export function soundConfiguration(given: string | undefined, environment: Environment): Configuration {
  const folder = resolve(folderOf(given, environment));
  const { configuration, problems } = validateConfiguration(folder, { ...environment });
  if (configuration !== undefined) return configuration;
  throw new Failure(`the configuration in ${folder} has errors:\n${problems.map(problemText).join('\n')}`);
}

type NodeShape = StatusShape['nodes'][number];

type StatusShape = Answers['GET /admin/v1/config/status'];

const NODE_COLUMNS: Columns<NodeShape> = {
  node: ({ name }) => name,
  ...same('number', 'revision', 'since'),
  'restart needed for': ({ restartNeeded }) => restartNeeded.join(', ') || null,
  'could not take': ({ failure }) => (failure === null ? null : failureText(failure)),
};

function failureText({ number, problems }: NonNullable<NodeShape['failure']>): string {
  const which = number === null ? '' : `revision ${number}: `;
  return which + problems.map(problemText).join('; ');
}

const LOOK_EVERY_MS = 200;

export interface Watched {
  readonly nodes: readonly NodeShape[];
  /** The number of nodes that reported that they cannot apply the revision. */
  readonly failed: number;
  /** The number of nodes that reported neither success nor failure before the timeout. */
  readonly silent: number;
}

/** Prints each node that has applied a revision or failed to, until all nodes have reported or the timeout is over. */
async function watchNodes(
  { client, output }: Pick<Session, 'client' | 'output'>,
  number: number,
  timeoutMs: number,
): Promise<Watched> {
  const deadline = Date.now() + timeoutMs;
  const shown = new Set<string>();
  for (;;) {
    const { nodes: all, newest } = await client.ask<StatusShape>('GET', '/config/status');
    const nodes = all.filter(({ source }) => source === 'database');
    const answered = nodes.filter((each) => hasTaken(each, number) || hasRefused(each, number));
    for (const each of answered.filter(({ node }) => !shown.has(node))) {
      shown.add(each.node);
      const { name, failure } = each;
      const what = hasTaken(each, number) || failure === null ? 'took it' : `rejected it: ${failureText(failure)}`;
      output.note(`${name} ${what} (${shown.size} of ${nodes.length})`);
    }
    if (answered.length === nodes.length || Date.now() > deadline) {
      if (newest !== null && newest.number > number) output.note(`Revision ${newest.number} was applied meanwhile.`);
      const failed = answered.filter((each) => !hasTaken(each, number)).length;
      return { nodes, failed, silent: nodes.length - answered.length };
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/** Returns whether a node has applied the revision with this number or a later one. */
function hasTaken(node: NodeShape, number: number): boolean {
  return node.number !== null && node.number >= number;
}

function hasRefused({ failure }: NodeShape, number: number): boolean {
  return failure?.number != null && failure.number >= number;
}

export interface ChangeOptions {
  readonly yes?: true;
  readonly force?: true;
  readonly dryRun?: true;
  readonly note?: string;
  readonly timeout: string;
}

type ChangeShape = Answers['POST /admin/v1/config/revisions'] & { readonly holdsFrom?: string };

const CHANGE_COLUMNS: Columns<FactChange> = {
  WHAT: ({ what }) => what,
  BEFORE: ({ before }) => before,
  AFTER: ({ after }) => after,
};

export function withChangeOptions(command: Command): Command {
  return command
    .option('--yes', 'do not ask for confirmation')
    .option('--dry-run', 'only show what it would change')
    .option('--force', 'apply it in spite of objections, such as a skipped stage of a rollout')
    .option('--note <note>', 'the reason, for the history and the audit log')
    .option('--timeout <seconds>', 'how long to wait for the nodes', '60');
}

/** Shows what a new configuration changes, asks for confirmation, applies it, and waits until every node has applied it. */
export async function changeConfiguration(
  { client, output }: Session,
  path: string,
  body: object,
  { yes, dryRun, force, note, timeout }: ChangeOptions,
): Promise<void> {
  const timeoutMs = toMilliseconds(timeout);
  const plan = await client.ask<ChangeShape>('POST', path, { ...body, dryRun: true });
  await showPlan(output, plan);
  if (plan.objections.length > 0 && force !== true && dryRun !== true)
    throw new Failure('Nothing was applied. Add --force to apply it in spite of the objections.');
  if (dryRun === true) return output.json ? showText(output, plan, []) : undefined;
  let { number } = plan;
  if (number === null) {
    if (yes !== true) await confirm(output, APPLY);
    const sent = { ...body, force: force === true, ...(note !== undefined && { note }) };
    const match = { 'if-match': `"${plan.newest}"` };
    const change = await client.ask<ChangeShape>('POST', path, sent, match);
    ({ number } = change);
    if (number === null) return showWaiting(output, change);
    output.note(`Revision ${number} (${plan.revision}) is applied.`);
  }
  const { nodes, failed, silent } = await watchNodes({ client, output }, number, timeoutMs);
  if (output.json) await showText(output, { number, revision: plan.revision, changes: plan.changes, nodes }, []);
  else await showList(output, { items: nodes }, NODE_COLUMNS);
  if (failed + silent > 0) throw new Failure(notEverywhere(number, plan.base.number, { failed, silent }));
}

async function showWaiting(output: Output, change: ChangeShape): Promise<void> {
  if (output.json) return showText(output, change, []);
  output.note(`It waits, and is applied to every node at ${change.holdsFrom}.`);
}

/** Runs the work. Prints every problem of a rejected configuration with its position. @throws Failure */
export async function withProblems<T>(output: Output, work: () => Promise<T>, file?: string): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'CONFIGURATION_INVALID') throw error;
    const { problems } = error.details as { problems: readonly ConfigurationProblem[] };
    await showText(
      output,
      { ok: false, problems },
      problems.map((each) => problemText(file === undefined ? each : { ...each, file })),
    );
    const count = `${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}`;
    throw new Failure(
      `${count}${file === undefined ? '; the active configuration stays' : ` in ${file}; nothing was applied`}.`,
    );
  }
}

async function showPlan(output: Output, plan: ChangeShape): Promise<void> {
  const { number, newest, base, changes, warnings, objections } = plan;
  if (number !== null)
    return output.note(`Revision ${number} (${plan.revision}), the newest, already has this content.`);
  if (base.number !== undefined && base.number !== newest)
    output.note(
      `Compared with revision ${base.number}: the newest, ${newest}, is not active on the node that answered.`,
    );
  if (!output.json && changes.length > 0) await showList(output, { items: changes }, CHANGE_COLUMNS);
  if (changes.length === 0) output.note('It does not change how calls are served.');
  for (const each of warnings) output.note(`${problemText(each)} (warning)`);
  for (const each of objections) output.note(`Objection: ${each}`);
}

const APPLY = {
  question: 'Apply it to every node?',
  remedy: 'add --yes, or --dry-run to see what it changes.',
  declined: 'Nothing was applied.',
};

function notEverywhere(
  number: number,
  before: number | undefined,
  { failed, silent }: { readonly failed: number; readonly silent: number },
): string {
  const what = [
    ...(failed > 0 ? [`${failed} rejected it and keep their configuration`] : []),
    ...(silent > 0 ? [`${silent} did not confirm it in time`] : []),
  ];
  const back = before === undefined ? '' : ` Roll all of them back with: tollgate config rollback ${before}`;
  return `Revision ${number} is applied, but not active on every node: ${what.join(', ')}.${back}`;
}

function toMilliseconds(seconds: string): number {
  if (!/^\d{1,6}$/.test(seconds))
    throw new UsageError(`--timeout is "${seconds}"; expected a whole number of seconds.`);
  return Number(seconds) * 1_000;
}

export const applyConfig: Verb = (noun, open) => {
  withChangeOptions(noun.command('apply'))
    .description('apply a gateway.config.yml to every node, after a check, a comparison and a confirmation')
    .requiredOption('--from <file>', 'the file, or - for standard input')
    .action(async ({ from, ...options }: ChangeOptions & { from: string }, command) => {
      const session = open(command);
      const text = await readFileOrInput(from, session.output);
      const change = () => changeConfiguration(session, '/config/revisions', { text }, options);
      await withProblems(session.output, change, from);
    });
};

/** Reads a file, or standard input for `-`. @throws Failure if the file cannot be read */
export async function readFileOrInput(from: string, output: Output): Promise<string> {
  if (from === '-') return output.read();
  try {
    return await readFile(from, 'utf8');
  } catch (cause) {
    throw new Failure(`${from} cannot be read (${(cause as { code?: string }).code ?? 'unreadable'}).`, { cause });
  }
}

export const diffConfig: Verb = (noun, open) => {
  noun
    .command('diff <before> <after>')
    .description('show what another configuration folder would change: routes, candidates, prices, settings')
    .action(async (before: string, after: string, _options, command) => {
      const { output, environment } = open(command);
      const old = configurationFacts(soundConfiguration(before, environment));
      const items = changesBetween(old, configurationFacts(soundConfiguration(after, environment)));
      if (items.length === 0 && !output.json) return output.note('Both configurations are equal.');
      await showList(output, { items }, CHANGE_COLUMNS);
    });
};

type ReloadShape = Answers['POST /admin/v1/config/reload'];

export const reloadConfig: Verb = (noun, open) => {
  noun
    .command('reload')
    .description('reload gateway.config.yml')
    .action(async (_options, command) => {
      const { client, output } = open(command);
      const reloaded = await withProblems(output, () => client.ask<ReloadShape>('POST', '/config/reload'));
      await showOne(output, reloaded, {
        revision: ({ revision }) => revision,
        before: ({ before }) => before,
        'restart needed for': ({ restartNeeded }) => restartNeeded.join(', ') || null,
      });
    });
};

export const rollbackConfig: Verb = (noun, open) => {
  withChangeOptions(noun.command('rollback <revision>'))
    .description('apply an earlier configuration to every node, by its number or its revision')
    .action(async (revision: string, options: ChangeOptions, command) => {
      const session = open(command);
      const path = `/config/revisions/${encodeURIComponent(revision)}/rollback`;
      const change = () => changeConfiguration(session, path, {}, options);
      await withProblems(session.output, change, `revision ${revision}`);
    });
};

export const configSchema: Verb = (noun, open) => {
  noun
    .command('schema')
    .addArgument(
      new Argument('[file]', 'the file that the schema is for').choices(['gateway', 'system']).default('gateway'),
    )
    .argument('[folder]', 'a folder whose system.config.yml names the plugins to load')
    .description('print the JSON Schema of a configuration file, for editors')
    .action(async (file: 'gateway' | 'system', given: string | undefined, _options, command) => {
      const { output, environment } = open(command);
      const loaded = loadFolder(folderOf(given, environment), environment);
      const schema = file === 'gateway' ? publishedGatewaySchema(loaded) : publishedSystemSchema(loaded);
      await output.write(`${JSON.stringify(schema, null, 2)}\n`);
    });
};

/** Loads the plugins of the configuration in a folder. @throws Failure if the configuration has errors */
export function loadFolder(folder: string, environment: Environment): LoadedPlugins {
  try {
    return loadPlugins(resolve(folder), { ...environment });
  } catch (error) {
    if (error instanceof ConfigurationError)
      throw new Failure(`The configuration in ${folder} has errors:\n${error.message}`, { cause: error });
    throw error;
  }
}

export const showConfig: Verb = (noun, open) => {
  noun
    .command('show [revision]')
    .description('print an applied gateway.config.yml, the newest or one by its number or revision')
    .action(async (given: string | undefined, _options, command) => {
      const { client, output } = open(command);
      const revision = given ?? (await newest(client));
      const path = `/config/revisions/${encodeURIComponent(revision)}`;
      const found = await client.ask<Answers['GET /admin/v1/config/revisions/{revision}']>('GET', path);
      if (output.json) await showText(output, found, []);
      else await output.write(found.text);
    });
};

async function newest(client: Client): Promise<string> {
  const { newest } = await client.ask<StatusShape>('GET', '/config/status');
  if (newest === null)
    throw new Failure('There is no applied configuration: this gateway reads its configuration from files.');
  return String(newest.number);
}

const TO_MEND = 'Fix the cause on that node, or roll all nodes back: tollgate config rollback <number>';

export const configStatus: Verb = (noun, open) => {
  noun
    .command('status')
    .description('show the active configuration of each node, and why a node rejected one')
    .action(async (_options, command) => {
      const { client, output } = open(command);
      const status = await client.ask<StatusShape>('GET', '/config/status');
      if (output.json) return showText(output, status, []);
      if (status.newest !== null) output.note(`Newest: revision ${status.newest.number} (${status.newest.revision}).`);
      await showList(output, { items: status.nodes }, NODE_COLUMNS);
      if (status.source === 'database' && status.nodes.some(({ failure }) => failure !== null))
        output.note(`A node retries a rejected configuration every 30 s. ${TO_MEND}`);
    });
};

export const validateConfig: Verb = (noun, open) => {
  noun
    .command('validate [folder]')
    .description('check gateway.config.yml and system.config.yml of a folder, without a gateway')
    .action(async (given: string | undefined, _options, command) => {
      const { output, environment } = open(command);
      const folder = resolve(folderOf(given, environment));
      const { configuration, problems, warnings } = validateConfiguration(folder, { ...environment });
      const revision = configuration?.revision ?? null;
      await showText(output, { ok: configuration !== undefined, revision, problems, warnings }, [
        ...problems.map(problemText),
        ...warnings.map((each) => `${problemText(each)} (warning)`),
        ...(revision === null ? [] : [`The configuration in ${folder} is valid (revision ${revision}).`]),
      ]);
      if (problems.length > 0)
        throw new Failure(`${problems.length} ${problems.length === 1 ? 'problem' : 'problems'} in ${folder}.`);
    });
};
