import type { Upstream } from '../shapes';
import { Badge, type Tone } from './badge';

const STATES: Readonly<Record<Upstream['state'], { readonly tone: Tone; readonly text: string }>> = {
  available: { tone: 'good', text: 'Available' },
  resting: { tone: 'warn', text: 'Rate limited by the vendor' },
  probing: { tone: 'warn', text: 'Probing' },
  ejected: { tone: 'bad', text: 'Ejected after failures' },
  'taken-out': { tone: 'bad', text: 'Disabled by an operator' },
  disabled: { tone: 'plain', text: 'Disabled by the configuration' },
};

export function UpstreamState({ state }: Pick<Upstream, 'state'>) {
  return <Badge tone={STATES[state].tone}>{STATES[state].text}</Badge>;
}
