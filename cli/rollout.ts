import { setTimeout as pause } from 'node:timers/promises';
import type { Answers } from '../shapes/answers';
import { failed, ROLLOUT, timeTo } from './columns';
import type { Verb } from './command';
import { confirm, showOne, showTable } from './output';

type RolloutShape = Answers['GET /admin/v1/rollouts/{name}'];
type CountsShape = RolloutShape['inStage']['control'];

const LOOK_EVERY_MS = 1_000;

const rolloutStatus: Verb = (noun, open) => {
  noun
    .command('status <name>')
    .description('show a rollout: control group, treatment group, and what it waits for')
    .option('--watch', 'refresh every second until it has ended')
    .action(async (name: string, { watch = false }: { readonly watch?: boolean }, command) => {
      const { client, output } = open(command);
      const path = `/rollouts/${encodeURIComponent(name)}`;
      for (;;) {
        const rollout = await client.ask<RolloutShape>('GET', path);
        const isLive = watch && !output.json && ['not begun', 'running', 'paused'].includes(rollout.status);
        if (watch && !output.json) await output.write(CLEAR);
        await showTable(output, rollout, linesOf(rollout));
        if (!isLive) return;
        await pause(LOOK_EVERY_MS);
      }
    });
};

/** The terminal codes that clear the screen and move the cursor to its upper left corner. */
const CLEAR = '\u001B[H\u001B[2J';

function linesOf(rollout: RolloutShape): readonly (readonly (string | number | null)[])[] {
  const { name, change, status, stage, stages, share, stickyBy, stageEndsAt, waitsFor, reason, inStage, inAll } =
    rollout;
  const groups = [inStage.control, inStage.treatment, inStage.shadow];
  const row = (what: string, read: (counts: CountsShape) => string | number | null) => [what, ...groups.map(read)];
  return [
    ['rollout', name],
    ['change', change],
    ['status', status],
    ['stage', `${stage} of ${stages.length}: ${share} % by ${stickyBy}`],
    ['next stage in', timeTo(stageEndsAt)],
    [reason === null ? 'waits for' : 'why', reason ?? waitsFor],
    ['callers hurt in all', inAll.treatment.callersHurt],
    ['cost of shadow calls in all USD', inAll.shadow.costUsd],
    [],
    ['in this stage', 'control', 'treatment', 'shadow'],
    row('calls', ({ calls }) => calls),
    row('failed %', failed),
    row('p95 first token ms', ({ p95FirstTokenMs }) => p95FirstTokenMs),
    row('p95 unstreamed ms', ({ p95WholeMs }) => p95WholeMs),
    row('cost per call USD', ({ meanCostUsd }) => meanCostUsd),
  ];
}

export default rolloutStatus;

interface Options {
  readonly reason?: string;
  readonly yes?: true;
}

/** Returns a verb that changes a rollout. If `askAbout` is given, the verb first asks the operator that question. */
function order(verb: string, description: string, askAbout?: (rollout: RolloutShape) => string): Verb {
  return (noun, open) => {
    const command = noun
      .command(`${verb} <name>`)
      .description(description)
      .option('--reason <text>', 'the reason, for other operators');
    if (askAbout !== undefined) command.option('--yes', 'do not ask for confirmation');
    command.action(async (name: string, { reason, yes }: Options, self) => {
      const { client, output } = open(self);
      const path = `/rollouts/${encodeURIComponent(name)}`;
      let stage: number | undefined;
      if (askAbout !== undefined) {
        const rollout = await client.ask<RolloutShape>('GET', path);
        const question = askAbout(rollout);
        if (yes !== true) await confirm(output, { question, remedy: 'add --yes.', declined: 'Nothing was changed.' });
        // The request names the rollout's stage that the operator saw, because that stage may end before the operator confirms.
        if (verb === 'promote') ({ stage } = rollout);
      }
      await showOne(output, await client.ask<RolloutShape>('POST', `${path}/${verb}`, { reason, stage }), ROLLOUT);
    });
  };
}

function askToPromote({ name, stage, stages, stickyBy }: RolloutShape): string {
  const next = stages[stage];
  if (next === undefined) return `Complete ${name} now?`;
  return `Begin stage ${stage + 1} of ${stages.length} of ${name} now: ${next.share} % by ${stickyBy}?`;
}

function askToRollBack({ name, share, stickyBy }: RolloutShape): string {
  return `Roll ${name} back now: serve all callers without the change, instead of ${share} % by ${stickyBy} with it?`;
}

export const pauseRollout = order('pause', 'pause it: the share stays, and the guards stay active');
export const resumeRollout = order('resume', 'continue it; one that was rolled back starts again');
export const promoteRollout = order('promote', 'start its next stage now', askToPromote);
export const rollbackRollout = order(
  'rollback',
  'roll it back: serve all callers without the change, from the next call on',
  askToRollBack,
);
