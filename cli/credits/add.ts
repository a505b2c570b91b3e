import { randomUUID } from 'node:crypto';
import type { Verb } from '../command';
import { Failure } from '../failure';
import { showOne } from '../output';

interface CreditShape {
  readonly id: string;
  readonly amountUsd: string;
  readonly balanceUsd: string;
  readonly idempotencyKey: string;
}

interface Options {
  readonly idempotencyKey?: string;
  readonly note?: string;
}

const addCredit: Verb = (noun, open) => {
  noun
    .command('add <account> <usd>')
    .description('add money to an account, for example: credits add <account> 25.00')
    .option('--idempotency-key <key>', 'the same key adds once, however often the command runs')
    .option('--note <text>', 'why, for the books')
    .action(async (account: string, amountUsd: string, { note, idempotencyKey = randomUUID() }: Options, command) => {
      const { client, output } = open(command);
      const path = `/accounts/${encodeURIComponent(account)}/credits`;
      const credit = await naming(idempotencyKey, () =>
        client.ask<CreditShape>('POST', path, { amountUsd, idempotencyKey, ...(note === undefined ? {} : { note }) }),
      );
      await showOne(output, credit, {
        'added USD': (item) => item.amountUsd,
        'balance USD': (item) => item.balanceUsd,
        'idempotency key': (item) => item.idempotencyKey,
      });
    });
};

/** Whether the money was added may not be known: the same key finds out without adding it twice. */
async function naming<T>(idempotencyKey: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new Failure(`${error.message}\nTo repeat it safely: --idempotency-key ${idempotencyKey}`, { cause: error });
  }
}

export default addCredit;
