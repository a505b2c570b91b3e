import type { Answers } from '../../shapes/answers';
import type { Client } from '../client';
import type { Verb } from '../command';
import { Failure } from '../failure';
import { showText } from '../output';
import type { StatusShape } from './nodes';

const showConfig: Verb = (noun, open) => {
  noun
    .command('show [revision]')
    .description('print an applied gateway.config.yml, the newest or one by its number or revision')
    .action(async (given: string | undefined, _options, command) => {
      const { client, output } = open(command);
      const revision = given ?? (await newest(client));
      const path = `/config/revisions/${encodeURIComponent(revision)}`;
      const found = await client.ask<Answers['GET /admin/v1/config/revisions/{revision}']>('GET', path);
      if (output.json) await showText(output, found, []);
      else await output.write(found.text);
    });
};

async function newest(client: Client): Promise<string> {
  const { newest } = await client.ask<StatusShape>('GET', '/config/status');
  if (newest === null)
    throw new Failure('There is no applied configuration: this gateway reads its configuration from files.');
  return String(newest.number);
}

export default showConfig;
