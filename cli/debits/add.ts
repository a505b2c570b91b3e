import { adjusts } from '../adjustment';
import type { Verb } from '../command';

const addDebit: Verb = (noun, open) => {
  const command = noun
    .command('add <account> <usd>')
    .description('debit money from an account, at most what is available');
  adjusts(command, open, 'debits');
};

export default addDebit;
