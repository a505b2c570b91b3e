import type { Command } from 'commander';
import type { MeaningChange } from '../../core/configuration/meaning';
import { type ConfigurationProblem, problemText } from '../../core/configuration/yaml-file';
import type { Answers } from '../../shapes/answers';
import type { Session } from '../command';
import { confirm } from '../confirm';
import { Failure, Refusal, UsageError } from '../failure';
import { type Columns, type Output, showList, showText } from '../output';
import { NODE_COLUMNS } from './nodes';
import { watchNodes } from './watch';

export interface ChangeOptions {
  readonly yes?: true;
  readonly force?: true;
  readonly dryRun?: true;
  readonly note?: string;
  readonly timeout: string;
}

type ChangeShape = Answers['POST /admin/v1/config/revisions'];

export const CHANGE_COLUMNS: Columns<MeaningChange> = {
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

/** Shows what would change, asks for confirmation, applies it, and waits until every node has applied it. */
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
    ({ number } = await client.ask<ChangeShape & { number: number }>('POST', path, sent, match));
    output.note(`Revision ${number} (${plan.revision}) is applied.`);
  }
  const { nodes, failed, silent } = await watchNodes({ client, output }, number, timeoutMs);
  if (output.json) await showText(output, { number, revision: plan.revision, changes: plan.changes, nodes }, []);
  else await showList(output, { items: nodes }, NODE_COLUMNS);
  if (failed + silent > 0) throw new Failure(notEverywhere(number, plan.base.number, { failed, silent }));
}

/** Shows every problem of a configuration with its place in the given file. @throws Failure */
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
  otherwise: 'add --yes, or --dry-run to see what it changes.',
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
  if (!/^\d{1,6}$/.test(seconds)) throw new UsageError(`--timeout is "${seconds}"; write whole seconds.`);
  return Number(seconds) * 1_000;
}
