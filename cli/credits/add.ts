import { adjusts } from '../adjustment';
import type { Verb } from '../command';

const addCredit: Verb = (noun, open) => {
  const command = noun
    .command('add <account> <usd>')
    .description('add money to an account, for example: credits add <account> 25.00');
  adjusts(command, open, 'credits');
};

export default addCredit;
