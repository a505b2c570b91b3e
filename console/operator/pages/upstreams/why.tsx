import { plural } from '../../../numbers';
import { Ago } from '../../../parts/ago';
import type { Upstream } from '../../shapes';

/** Why the upstream receives no calls, or until when. */
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
        next attempt <Ago at={until} />
      </>
    ) : refused.length > 0 ? (
      `${plural(refused.length, 'credential')} not usable`
    ) : undefined;
  return words === undefined ? null : <span class="sub faint small">{words}</span>;
}
