import type { TranslatedCall } from '../../catalog/upstream';
import type { JsonObject } from '../../json-values';

export function writeRequest(_: TranslatedCall): JsonObject {
  throw new Error('not written yet');
}
