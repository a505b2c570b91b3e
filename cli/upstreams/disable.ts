import type { Verb } from '../command';
import { showOne } from '../output';
import { UPSTREAM_COLUMNS, type UpstreamShape } from './shape';

const disableUpstream: Verb = (noun, open) => {
  noun
    .command('disable <name>')
    .alias('eject')
    .description('disable an upstream on every node until it is enabled')
    .option('--reason <text>', 'the reason, for other operators')
    .action(async (name: string, { reason }: { readonly reason?: string }, command) => {
      const { client, output } = open(command);
      const path = `/upstreams/${encodeURIComponent(name)}/disable`;
      await showOne(output, await client.ask<UpstreamShape>('POST', path, { reason }), UPSTREAM_COLUMNS);
    });
};

export default disableUpstream;
