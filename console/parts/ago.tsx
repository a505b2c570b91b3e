import { showAgo, showWhole } from '../times';

/** How long ago, or how soon; the moment itself where one points at it. */
export function Ago({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={showWhole(at)}>
      {showAgo(at)}
    </time>
  );
}
