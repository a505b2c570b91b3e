import { plural } from '../numbers';
import { Ago } from '../parts/ago';
import { Badge, type Tone } from '../parts/badge';
import type { Upstream } from './shapes';

const STATES: Readonly<Record<Upstream['state'], { readonly tone: Tone; readonly text: string }>> = {
  available: { tone: 'good', text: 'Available' },
  resting: { tone: 'warn', text: 'Asked for time' },
  probing: { tone: 'warn', text: 'Being probed' },
  ejected: { tone: 'bad', text: 'Ejected after failures' },
  'taken-out': { tone: 'bad', text: 'Disabled by an operator' },
  disabled: { tone: 'plain', text: 'Disabled by the configuration' },
};

export function UpstreamState({ state }: Pick<Upstream, 'state'>) {
  return <Badge tone={STATES[state].tone}>{STATES[state].text}</Badge>;
}

/** Why it is not asked, or until when. */
export function Why({ upstream }: { readonly upstream: Upstream }) {
  const { takenOut, ejectedUntil, restsUntil, disabledReason } = upstream;
  const until = ejectedUntil ?? restsUntil;
  const refused = upstream.credentials.filter(({ state }) => state !== 'available');
  const words =
    takenOut !== null ? (
      <>
        {takenOut.by}, <Ago at={takenOut.since} />
        {takenOut.reason !== null && `: ${takenOut.reason}`}
      </>
    ) : disabledReason !== null ? (
      disabledReason
    ) : until !== null ? (
      <>
        asked again <Ago at={until} />
      </>
    ) : refused.length > 0 ? (
      `${plural(refused.length, 'credential')} not taken`
    ) : undefined;
  return words === undefined ? null : <span class="sub faint small">{words}</span>;
}
