import type { Answers } from '../shapes/answers';
import { type Client, withQuery } from './client';
import { VIOLATION } from './columns';
import type { Verb } from './command';
import { Failure } from './failure';
import { showList } from './output';

interface Options {
  readonly account?: string;
  readonly days?: string;
  readonly repair?: boolean;
}

type Looked = Answers['GET /admin/v1/ledger/verify'];

const verifyLedger: Verb = (noun, open) => {
  noun
    .command('verify')
    .description('check all invariants of the ledger while calls continue; exit status 1 if one is violated')
    .option('--account <id>', 'only this account')
    .option('--days <n>', 'compare the usage records of this many days with their entries (default 7)')
    .option('--repair', 'repair violations by new entries if possible; existing entries never change')
    .action(async (options: Options, command) => {
      const { client, output } = open(command);
      const looked = await lookAtAll(client, options);
      const { items, accounts, entries } = looked;
      const left = items.filter(({ repair }) => repair === null).length;
      if (output.json || items.length > 0) await showList(output, looked, VIOLATION);
      output.note(
        `${accounts} accounts, ${entries} entries, ${items.length} violations, ${items.length - left} repaired.`,
      );
      if (left > 0)
        throw new Failure('The ledger has violated invariants. See docs/operating.md for what to do about each.');
    });
};

async function lookAtAll(client: Client, { account, days, repair }: Options): Promise<Omit<Looked, 'nextCursor'>> {
  const items: Looked['items'] = [];
  let [accounts, entries] = [0, 0];
  let cursor: string | undefined;
  do {
    const [method, path] = repair === true ? ['POST', '/ledger/repair'] : ['GET', '/ledger/verify'];
    const looked = await client.ask<Looked>(method, withQuery(path, { account, days, cursor }));
    items.push(...looked.items);
    accounts += looked.accounts;
    entries += looked.entries;
    cursor = looked.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return { items, accounts, entries };
}

export default verifyLedger;
