import { problemText } from '../../core/configuration/yaml-file';
import type { Answers } from '../../shapes/answers';
import type { Verb } from '../command';
import { showOne } from '../output';

type RevisionShape = Answers['GET /admin/v1/config/revision'];

const showRevision: Verb = (noun, open) => {
  noun
    .command('revision')
    .description('show the active configuration, and why the last reload was rejected')
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
