import { shortUsd } from '../../money';
import type { Tone } from '../../parts/values';
import type { AccountEvent, Webhook } from '../../shapes';
import { showDate } from '../../times';
import { WINDOWS } from '../team/crew';

interface Kind {
  /** What a webhook that asks for this kind receives. */
  readonly about: string;
  /** Says what happened, from the data of an event of this kind. */
  readonly say: (data: AccountEvent['data']) => string;
  readonly tone: (data: AccountEvent['data']) => Tone;
}

const usd = (amount: unknown) => (typeof amount === 'string' ? shortUsd(amount) : '–');
const bad = (): Tone => 'bad';
const warn = (): Tone => 'warn';

/** The kinds of events of an account. */
const KINDS: Readonly<Record<NonNullable<Webhook['types']>[number], Kind>> = {
  'budget.reached': {
    about: 'a budget reached a threshold',
    say: ({ name, threshold, spentUsd, limitUsd, window }) =>
      `${name} reached ${threshold} %: ${usd(spentUsd)} of ${usd(limitUsd)} ${WINDOWS[window as keyof typeof WINDOWS] ?? ''}`,
    tone: ({ threshold }) => (Number(threshold) >= 100 ? 'bad' : 'warn'),
  },
  'balance.low': {
    about: 'the balance is low',
    say: ({ balanceUsd, balanceLowUsd }) => `The balance is ${usd(balanceUsd)}, below ${usd(balanceLowUsd)}`,
    tone: warn,
  },
  'account.frozen': {
    about: 'the account was frozen',
    say: ({ reason }) =>
      `The account was frozen: ${reason === 'excess' ? 'its calls cost more than was held' : 'by the operator'}`,
    tone: bad,
  },
  'key.expires_soon': {
    about: 'an API key expires soon',
    say: ({ name, expiresAt }) => `The key ${name} expires on ${showDate(String(expiresAt))}`,
    tone: warn,
  },
  'sandbox.state': {
    about: 'a sandbox changed its state',
    say: ({ state }) => `A sandbox is ${String(state).toLowerCase()}`,
    tone: () => 'plain',
  },
  'webhook.disabled': {
    about: 'a webhook was disabled after failures',
    say: ({ url }) => `The webhook ${url} was disabled after failures`,
    tone: bad,
  },
};

export const EVENT_TYPES = Object.entries(KINDS).map(([value, { about }]) => ({ value, text: `${value}: ${about}` }));

/** Says what an event is. A kind that this page does not know has its name. */
export function describeEvent({ type, data }: AccountEvent): { readonly text: string; readonly tone: Tone } {
  const kind: Kind | undefined = KINDS[type as keyof typeof KINDS];
  return kind === undefined ? { text: type, tone: 'plain' } : { text: kind.say(data), tone: kind.tone(data) };
}
