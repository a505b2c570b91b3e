import { setTimeout as pause } from 'node:timers/promises';
import type { Answers } from '../../shapes/answers';
import { failed, timeTo } from '../columns';
import type { Verb } from '../command';
import { showTable } from '../output';

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
