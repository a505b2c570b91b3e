import { Badge, type Tone } from '../../parts/badge';
import type { Sandbox } from '../../shapes';

const TONES: Readonly<Record<string, Tone>> = {
  PROVISIONING: 'accent',
  RUNNING: 'good',
  SUSPENDED: 'plain',
  SUSPENDING: 'accent',
  RESUMING: 'accent',
  TERMINATING: 'warn',
  RECONCILING: 'warn',
  UNKNOWN: 'warn',
  FAILED: 'bad',
  TERMINATED: 'plain',
};

/** Converts the contract's upper-case words to readable text. */
export function toWords(word: string): string {
  const words = word.toLowerCase().replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function StateBadge({ state }: { readonly state: string }) {
  return <Badge tone={TONES[state] ?? 'plain'}>{toWords(state)}</Badge>;
}

export function isFinal({ observedState }: Pick<Sandbox, 'observedState'>): boolean {
  return observedState === 'TERMINATED' || observedState === 'FAILED';
}
