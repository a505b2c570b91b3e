import type { Verb } from '../command';
import { showList } from '../output';
import type { ListShape } from '../shapes';
import { UPSTREAM_COLUMNS, type UpstreamShape } from './shape';

const listUpstreams: Verb = (noun, open) => {
  noun
    .command('list')
    .description('list upstreams with health, latency, prices and whether they are disabled or ejected')
    .action(async (_options, command) => {
      const { client, output } = open(command);
      await showList(output, await client.ask<ListShape<UpstreamShape>>('GET', '/upstreams'), UPSTREAM_COLUMNS);
    });
};

export default listUpstreams;
