import type { Answers } from '../../shapes/answers';
import type { Verb } from '../command';
import { type Columns, showList } from '../output';
import type { ListShape } from '../shapes';

type AttemptShape = Answers['GET /admin/v1/usage/{requestId}/attempts']['items'][number];

const COLUMNS: Columns<AttemptShape> = {
  time: ({ createdAt }) => createdAt,
  upstream: ({ upstream }) => upstream,
  credential: ({ credential }) => credential,
  model: ({ model }) => model,
  cause: ({ cause }) => cause,
  outcome: ({ outcome }) => outcome,
  status: ({ status }) => status,
  reported: ({ isReported }) => (isReported ? 'yes' : 'no'),
  'upstream cost USD': ({ upstreamCost }) => upstreamCost,
  'upstream request': ({ upstreamRequestId }) => upstreamRequestId,
};

const listAttempts: Verb = (noun, open) => {
  noun
    .command('attempts <request>')
    .description('list the requests to upstreams that one call made, with what each cost the platform')
    .action(async (request: string, _options, command) => {
      const { client, output } = open(command);
      const path = `/usage/${encodeURIComponent(request)}/attempts`;
      await showList(output, await client.ask<ListShape<AttemptShape>>('GET', path), COLUMNS);
    });
};

export default listAttempts;
