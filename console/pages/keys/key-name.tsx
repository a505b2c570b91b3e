import type { ApiKey } from '../../shapes';

/** A key by its name and the shown ends of its secret. */
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
