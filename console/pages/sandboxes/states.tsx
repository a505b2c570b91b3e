import { Badge, type Tone } from '../../parts/values';
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

/** Converts an upper-case value of the contract, such as a state, to readable text. */
export function toWords(word: string): string {
  const words = word.toLowerCase().replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function StateBadge({ state }: { readonly state: string }) {
  return <Badge tone={TONES[state] ?? 'plain'}>{toWords(state)}</Badge>;
}

const COLOURS: Readonly<Record<string, string>> = {
  PROVISIONING: 'var(--series-3)',
  RUNNING: 'var(--series-1)',
  SUSPENDED: 'var(--series-5)',
  UNKNOWN: 'var(--series-8)',
  FAILED: 'var(--bad)',
};

/** Returns the color of a state in charts. */
export function colourOf(state: string): string {
  return COLOURS[state] ?? 'var(--text-3)';
}

export function isFinal({ observedState }: Pick<Sandbox, 'observedState'>): boolean {
  return observedState === 'TERMINATED' || observedState === 'FAILED';
}

export function sizeOf({ resources: { cpu, memoryGiB, gpu } }: Pick<Sandbox, 'resources'>): string {
  const gpus = gpu.map(({ count, model }) => `, ${count} × ${model}`).join('');
  return `${cpu} CPU, ${memoryGiB} GiB${gpus}`;
}

export function livedMs({ createdAt, terminatedAt }: Pick<Sandbox, 'createdAt' | 'terminatedAt'>): number {
  return (terminatedAt === null ? Date.now() : Date.parse(terminatedAt)) - Date.parse(createdAt);
}
