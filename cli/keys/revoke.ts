import type { Verb } from '../command';
import { showOne } from '../output';
import { KEY_COLUMNS, type KeyShape } from '../shapes';

const revokeKey: Verb = (noun, open) => {
  noun
    .command('revoke <key>')
    .description('revoke a key by its id; its next call is refused')
    .action(async (key: string, _options, command) => {
      const { client, output } = open(command);
      await showOne(output, await client.ask<KeyShape>('DELETE', `/keys/${encodeURIComponent(key)}`), KEY_COLUMNS);
    });
};

export default revokeKey;
