import type { Answers } from '../../shapes/answers';
import type { Columns } from '../output';

export type UpstreamShape = Answers['GET /admin/v1/upstreams/{name}'];

export const UPSTREAM_COLUMNS: Columns<UpstreamShape> = {
  name: ({ name }) => name,
  adapters: ({ adapters }) => adapters.join(', '),
  tier: ({ tier }) => tier,
  state: ({ state }) => state,
  // An upstream without calls has no success rate to show.
  'success %': ({ successRate, attempts: { answered, failed } }) =>
    successRate === null || (successRate === 1 && answered + failed === 0) ? null : (successRate * 100).toFixed(1),
  'first token ms': ({ firstTokenMs }) => firstTokenMs,
  'answer ms': ({ wholeAnswerMs }) => wholeAnswerMs,
  'answered/failed': ({ attempts: { answered, failed } }) => `${answered}/${failed}`,
  models: ({ models }) => models.length,
  'in/out USD per million': ({ models }) =>
    `${range(models.map(({ pricePerMillion: { input } }) => input))} / ${range(models.map(({ pricePerMillion: { output } }) => output))}`,
  credentials: ({ credentials }) => {
    const good = credentials.filter(({ state }) => state === 'available');
    return good.length === credentials.length ? credentials.length : `${good.length} of ${credentials.length}`;
  },
  note: ({ disabledReason, takenOut, ejectedUntil, credentials }) =>
    disabledReason ??
    takenOut?.reason ??
    (ejectedUntil === null ? credentialNote(credentials) : `until ${ejectedUntil}`),
};

/** Names the credentials that cannot be used, with the reason. */
function credentialNote(credentials: UpstreamShape['credentials']): string | null {
  const notes = credentials
    .filter(({ state }) => state !== 'available')
    .map(({ name, state, refusedWith, restsUntil }) => {
      const status = refusedWith === null ? '' : ` (${refusedWith})`;
      return `${name}: ${state}${status}${restsUntil === null ? '' : ` until ${restsUntil}`}`;
    });
  return notes.length === 0 ? null : notes.join('; ');
}

/** Returns a range from the lowest to the highest amount, without trailing zeros. */
function range(amounts: readonly string[]): string {
  const sorted = amounts.map(Number).sort((one, two) => one - two);
  const [lowest] = sorted;
  const highest = sorted.at(-1);
  return lowest === highest ? String(lowest ?? '-') : `${lowest}–${highest}`;
}
