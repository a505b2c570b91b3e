import type { Verb } from '../command';
import { showOne } from '../output';
import { UPSTREAM_COLUMNS, type UpstreamShape } from './shape';

const enableUpstream: Verb = (noun, open) => {
  noun
    .command('enable <name>')
    .alias('restore')
    .description('enable a disabled upstream, and end its ejection')
    .action(async (name: string, _options, command) => {
      const { client, output } = open(command);
      const path = `/upstreams/${encodeURIComponent(name)}/enable`;
      await showOne(output, await client.ask<UpstreamShape>('POST', path, {}), UPSTREAM_COLUMNS);
    });
};

export default enableUpstream;
