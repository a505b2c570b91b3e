import type { Protocol } from '../../core/catalog/protocols';
import { DIALECTS, itemsRule } from '../../core/dialects/dialects';
import { fail } from '../../core/errors';
import { sliceChunks } from '../../core/wire/json-members';
import { hasDoubtfulKeys } from './doubtful-keys';
import { notSupported } from './objections';
import type { CallObserver, ItemPlace } from './observe-call';
import type { NamedObject } from './weigh-members';

/** The most bytes of a reference, which is an id and a type. */
const LONGEST_REFERENCE = 2_048;

/**
 * Returns the items of earlier answers that a conversation names.
 * @throws NOT_SUPPORTED if readers could read one in two ways, INVALID_FIELD if two name the same item
 */
export function namedItems(
  protocol: Protocol,
  { references }: Pick<CallObserver, 'references'>,
  chunks: readonly Buffer[],
): readonly NamedObject[] {
  const kind = itemsRule(DIALECTS[protocol])?.kind;
  if (kind === undefined || references.length === 0) return [];
  const params = new Map<string, string>();
  for (const place of references) {
    const param = `input[${place.index}]`;
    const id = idIn(place, chunks);
    if (id === undefined)
      throw notSupported(param, `"${param}" names an item in a form that the gateway does not know.`);
    const before = params.get(id);
    // Vendors refuse a repeated item. If the gateway let it pass, the hold would have to count the item each time.
    if (before !== undefined)
      throw fail('INVALID_FIELD', { param, message: `${param}: names the same item as ${before}` });
    params.set(id, param);
  }
  return [...params].map(([id, param]) => ({ kind, id, param }));
}

function idIn({ from, to }: ItemPlace, chunks: readonly Buffer[]): string | undefined {
  if (to - from > LONGEST_REFERENCE) return undefined;
  const text = sliceChunks(chunks, from, to).toString();
  if (hasDoubtfulKeys(text)) return undefined;
  const { id, type: _, ...others } = JSON.parse(text) as Readonly<Record<string, unknown>>;
  return typeof id === 'string' && Object.keys(others).length === 0 ? id : undefined;
}
