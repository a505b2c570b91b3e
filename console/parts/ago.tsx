import { showAgo, showWhole } from '../times';

/** How long ago, or how soon; pointing at it shows the exact time. */
export function Ago({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={showWhole(at)}>
      {showAgo(at)}
    </time>
  );
}
