import { useState } from 'preact/hooks';
import { ask } from '../../../api';
import { exactUsd } from '../../../money';
import { ActDialog } from '../../../parts/act-dialog';
import { AmountField, TextField } from '../../../parts/text-field';
import type { Account } from '../../shapes';

interface Props {
  readonly account: Account;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Books a credit or a debit. A dialog keeps one idempotency key, so a repeated request is booked once. */
export function BookDialog({ account, noun, onClose, onDone }: Props & { readonly noun: 'credits' | 'debits' }) {
  const [amountUsd, setAmount] = useState('');
  const [note, setNote] = useState('');
  const [idempotencyKey] = useState(() => `page-${newKey()}`);
  const isCredit = noun === 'credits';
  const body = { amountUsd, idempotencyKey, ...(note !== '' && { note }) };
  return (
    <ActDialog
      title={isCredit ? `Credit ${account.name}` : `Debit ${account.name}`}
      verb={isCredit ? 'Book the credit' : 'Book the debit'}
      isDestructive={!isCredit}
      done={isCredit ? 'The credit is booked.' : 'The debit is booked.'}
      act={() => ask(`/admin/v1/accounts/${account.id}/${noun}`, { method: 'POST', body })}
      onDone={onDone}
      onClose={onClose}
      fields={['amountUsd', 'note']}
    >
      {(errorOf) => (
        <>
          <p class="quiet">
            {isCredit ? 'The next call can spend it.' : 'You can debit at most what is available.'}
            {account.availableUsd !== null && ` Available now: ${exactUsd(account.availableUsd)}.`} An entry cannot be
            removed. Correct it with an entry of the opposite sign.
          </p>
          <AmountField
            label="Amount"
            isRequired
            placeholder="25.00"
            value={amountUsd}
            onChange={setAmount}
            error={errorOf('amountUsd')}
          />
          <TextField
            label="Note"
            hint="For example the number of the invoice."
            value={note}
            onChange={setNote}
            error={errorOf('note')}
          />
        </>
      )}
    </ActDialog>
  );
}

/** Returns a new key. `crypto.randomUUID` exists only on https and localhost. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function FreezeDialog({ account, onClose, onDone }: Props) {
  const isActive = account.status === 'active';
  return (
    <ActDialog
      title={isActive ? 'Freeze the account?' : 'Unfreeze the account?'}
      verb={isActive ? 'Freeze' : 'Unfreeze'}
      isDestructive={isActive}
      keep={isActive ? 'Keep it active' : 'Keep it frozen'}
      done={isActive ? `${account.name} is frozen.` : `${account.name} is active.`}
      act={() =>
        ask(`/admin/v1/accounts/${account.id}/${isActive ? 'freeze' : 'unfreeze'}`, { method: 'POST', body: {} })
      }
      onDone={onDone}
      onClose={onClose}
    >
      {() =>
        isActive ? (
          <p>
            The gateway refuses new calls of <strong>{account.name}</strong> until you unfreeze the account. Running
            calls continue to their end.
          </p>
        ) : (
          <p>
            The gateway accepts calls of <strong>{account.name}</strong> again. Its excess starts at zero.
          </p>
        )
      }
    </ActDialog>
  );
}
