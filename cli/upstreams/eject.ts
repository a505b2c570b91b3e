import type { Verb } from '../command';
import { showOne } from '../output';
import { UPSTREAM_COLUMNS, type UpstreamShape } from './shape';

const ejectUpstream: Verb = (noun, open) => {
  noun
    .command('eject <name>')
    .description('ask an upstream no more until it is restored')
    .option('--reason <text>', 'why, for whoever looks next')
    .action(async (name: string, { reason }: { readonly reason?: string }, command) => {
      const { client, output } = open(command);
      const path = `/upstreams/${encodeURIComponent(name)}/eject`;
      await showOne(output, await client.ask<UpstreamShape>('POST', path, { reason }), UPSTREAM_COLUMNS);
    });
};

export default ejectUpstream;
