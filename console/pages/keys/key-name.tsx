import type { ApiKey } from '../../shapes';

/** A key's name and the visible ends of its secret. */
export function KeyName({ apiKey }: { readonly apiKey: ApiKey }) {
  return (
    <>
      <strong>{apiKey.name}</strong>{' '}
      <span class="mono quiet">
        {apiKey.prefix}…{apiKey.suffix}
      </span>
    </>
  );
}
