import { type ConfigurationProblem, problemText } from '../../core/configuration/yaml-file';
import type { Verb } from '../command';
import { showOne } from '../output';

interface RevisionShape {
  readonly source: string;
  readonly number: number | null;
  readonly revision: string;
  readonly since: string;
  readonly restartNeeded: readonly string[];
  readonly lastFailure: {
    readonly at: string;
    readonly actor: string;
    readonly problems: readonly ConfigurationProblem[];
  } | null;
}

const showRevision: Verb = (noun, open) => {
  noun
    .command('revision')
    .description('which configuration is in force, and why the last reload was refused')
    .action(async (_options, command) => {
      const { client, output } = open(command);
      await showOne(output, await client.ask<RevisionShape>('GET', '/config/revision'), {
        revision: ({ revision }) => revision,
        number: ({ number }) => number,
        source: ({ source }) => source,
        since: ({ since }) => since,
        'restart needed for': ({ restartNeeded }) => restartNeeded.join(', ') || null,
        'last failure': ({ lastFailure }) => lastFailure?.at,
        problems: ({ lastFailure }) => lastFailure?.problems.map(problemText).join('; '),
      });
    });
};

export default showRevision;
