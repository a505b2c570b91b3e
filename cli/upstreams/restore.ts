import type { Verb } from '../command';
import { showOne } from '../output';
import { UPSTREAM_COLUMNS, type UpstreamShape } from './shape';

const restoreUpstream: Verb = (noun, open) => {
  noun
    .command('restore <name>')
    .description('enable a disabled upstream, and end its ejection')
    .action(async (name: string, _options, command) => {
      const { client, output } = open(command);
      const path = `/upstreams/${encodeURIComponent(name)}/restore`;
      await showOne(output, await client.ask<UpstreamShape>('POST', path, {}), UPSTREAM_COLUMNS);
    });
};

export default restoreUpstream;
