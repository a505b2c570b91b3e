import type { Conversation } from '../../catalog/conversation';
import type { JsonObject } from '../../json-values';
import type { ClientDialect } from '../client-dialect';

export const names: ClientDialect['names'] = {};

export function readRequest(_: JsonObject): Conversation {
  throw new Error('not written yet');
}
