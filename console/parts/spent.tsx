import { addUsd, shareOf, shortUsd } from '../money';
import { Amount, NONE } from './values';

interface Props {
  /** What is spent; null while the ledger does not answer. */
  readonly spentUsd: string | null;
  readonly heldUsd: string | null;
  /** null means no limit. */
  readonly limitUsd: string | null;
}

/** The spent amount of a limit. A lighter color shows held money, because running calls may spend it soon. */
export function Spent({ spentUsd, heldUsd, limitUsd }: Props) {
  if (spentUsd === null || heldUsd === null) return NONE;
  if (limitUsd === null) {
    return (
      <span class="figure">
        <Amount usd={spentUsd} /> <span class="faint small">no limit</span>
      </span>
    );
  }
  const spent = shareOf(spentUsd, limitUsd);
  const taken = shareOf(addUsd([spentUsd, heldUsd]), limitUsd);
  return (
    <div class="spent">
      <span class="figure">
        <Amount usd={spentUsd} /> <span class="faint">of {shortUsd(limitUsd)}</span>
      </span>
      <span class={taken >= 0.9 ? 'meter is-full' : 'meter'} aria-hidden="true">
        <span class="meter-held" style={{ width: `${taken * 100}%` }} />
        <span class="meter-spent" style={{ width: `${spent * 100}%` }} />
      </span>
    </div>
  );
}
