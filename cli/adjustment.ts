import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import type { Answers } from '../shapes/answers';
import type { Session } from './command';
import { Failure, Refusal } from './failure';
import { showOne } from './output';

type AdjustmentShape = Answers['POST /admin/v1/accounts/{accountId}/credits'];

interface Options {
  readonly idempotencyKey?: string;
  readonly note?: string;
}

/** Adds to a command what credits and debits share: an amount that is booked once per idempotency key. */
export function adjusts(command: Command, open: (command: Command) => Session, noun: 'credits' | 'debits'): void {
  command
    .option('--idempotency-key <key>', 'makes a retry safe: the same key is booked once')
    .option('--note <text>', 'the reason, for the ledger')
    .action(async (account: string, amountUsd: string, { note, idempotencyKey = randomUUID() }: Options) => {
      const { client, output } = open(command);
      const path = `/accounts/${encodeURIComponent(account)}/${noun}`;
      const made = await naming(idempotencyKey, () =>
        client.ask<AdjustmentShape>('POST', path, {
          amountUsd,
          idempotencyKey,
          ...(note === undefined ? {} : { note }),
        }),
      );
      await showOne(output, made, {
        [noun === 'credits' ? 'added USD' : 'taken USD']: (item) => item.amountUsd,
        'balance USD': (item) => item.balanceUsd,
        'idempotency key': (item) => item.idempotencyKey,
      });
    });
}

/** Adds the idempotency key to a failure's message, because the amount may have been booked. A retry with that key books it at most once. */
async function naming<T>(idempotencyKey: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure) || error instanceof Refusal) throw error;
    throw new Failure(`${error.message}\nTo repeat it safely: --idempotency-key ${idempotencyKey}`, { cause: error });
  }
}
