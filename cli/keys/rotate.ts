import type { Answers } from '../../shapes/answers';
import type { Verb } from '../command';
import { UsageError } from '../failure';
import { showOne } from '../output';
import { KEY_COLUMNS } from '../shapes';

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

const rotateKey: Verb = (noun, open) => {
  noun
    .command('rotate <key>')
    .description('give a key a new secret, by its id; it is shown only once')
    .option('--grace <time>', 'how long the previous secret keeps working, such as 24h or 7d; 0 ends it at once', '24h')
    .action(async (key: string, { grace }: { grace: string }, command) => {
      const { client, output } = open(command);
      const path = `/keys/${encodeURIComponent(key)}/rotate`;
      const body = { graceSeconds: toSeconds(grace) };
      const made = await client.ask<Answers['POST /admin/v1/keys/{keyId}/rotate']>('POST', path, body);
      const columns = { ...KEY_COLUMNS, secret: (item: typeof made) => item.key };
      await showOne(output, made, columns);
      output.note(
        `Store the secret now: it cannot be shown again. The previous one works until ${made.previousSecretUntil}.`,
      );
    });
};

function toSeconds(text: string): number {
  if (text === '0') return 0;
  const [, count, unit] = /^(\d{1,8})([smhd])$/.exec(text) ?? [];
  if (count === undefined) throw new UsageError('--grace: expected a time such as 24h or 7d, or 0.');
  return Number(count) * SECONDS[unit as keyof typeof SECONDS];
}

export default rotateKey;
