import type { Verb } from '../command';
import { showOne } from '../output';
import { ROLLOUT_COLUMNS, type RolloutShape } from './shape';

function order(verb: string, description: string): Verb {
  return (noun, open) => {
    noun
      .command(`${verb} <name>`)
      .description(description)
      .option('--reason <text>', 'why, for whoever looks next')
      .action(async (name: string, { reason }: { readonly reason?: string }, command) => {
        const { client, output } = open(command);
        const path = `/rollouts/${encodeURIComponent(name)}/${verb}`;
        await showOne(output, await client.ask<RolloutShape>('POST', path, { reason }), ROLLOUT_COLUMNS);
      });
  };
}

export const pauseRollout = order('pause', 'stop its clock: the share stays, the guards watch on');
export const resumeRollout = order('resume', 'go on; one that was rolled back begins anew');
export const promoteRollout = order('promote', 'begin its next stage now');
export const rollbackRollout = order('rollback', 'serve everybody as before, from the next call on');
