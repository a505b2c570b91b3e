import type { Verb } from '../command';
import { type Columns, showList } from '../output';
import type { ListShape } from '../shapes';

interface AttemptShape {
  readonly createdAt: string;
  readonly upstream: string;
  readonly credential: string;
  readonly model: string;
  readonly cause: string;
  readonly outcome: string;
  readonly status: number | null;
  readonly upstreamRequestId: string | null;
  readonly isReported: boolean;
  readonly upstreamCost: string;
}

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
