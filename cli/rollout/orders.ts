import type { Answers } from '../../shapes/answers';
import { ROLLOUT } from '../columns';
import type { Verb } from '../command';
import { confirm } from '../confirm';
import { showOne } from '../output';

type RolloutShape = Answers['GET /admin/v1/rollouts/{name}'];

interface Options {
  readonly reason?: string;
  readonly yes?: true;
}

/** Returns a verb that changes a rollout. With `askAbout` it asks for confirmation first. */
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
        if (yes !== true)
          await confirm(output, { question, otherwise: 'add --yes.', declined: 'Nothing was changed.' });
        // The request names the confirmed stage, because that stage may end before the operator answers.
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
