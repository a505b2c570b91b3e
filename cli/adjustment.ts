import { randomUUID } from 'node:crypto';
import type { Answers } from '../shapes/answers';
import type { Verb } from './command';
import { Failure, Refusal } from './failure';
import { showOne } from './output';

type AdjustmentShape = Answers['POST /admin/v1/accounts/{accountId}/credits'];

interface Options {
  readonly idempotencyKey?: string;
  readonly note?: string;
}

/** Returns a command that credits or debits an account. The gateway books the amount once per idempotency key. */
function adjusts(noun: 'credits' | 'debits', summary: string): Verb {
  return (root, open) => {
    root
      .command('add <account> <usd>')
      .description(summary)
      .option('--idempotency-key <key>', 'makes a retry safe: the same key is booked once')
      .option('--note <text>', 'the reason, for the ledger')
      .action(async (account: string, amountUsd: string, options: Options, command) => {
        const { client, output } = open(command);
        const { note, idempotencyKey = randomUUID() } = options;
        const path = `/accounts/${encodeURIComponent(account)}/${noun}`;
        const made = await naming(idempotencyKey, () =>
          client.ask<AdjustmentShape>('POST', path, { amountUsd, idempotencyKey, note }),
        );
        await showOne(output, made, {
          [noun === 'credits' ? 'added USD' : 'taken USD']: (item) => item.amountUsd,
          'balance USD': (item) => item.balanceUsd,
          'idempotency key': (item) => item.idempotencyKey,
        });
      });
  };
}

export const credit = adjusts('credits', 'add money to an account, for example: credits add <account> 25.00');
export const debit = adjusts('debits', 'debit money from an account, at most what is available');

/** Adds the idempotency key to a failure's message, because the gateway may have booked the amount. A retry with that key books it at most once. */
async function naming<T>(idempotencyKey: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure) || error instanceof Refusal) throw error;
    throw new Failure(`${error.message}\nTo repeat it safely: --idempotency-key ${idempotencyKey}`, { cause: error });
  }
}
