import { type AppliedRevision, findRevision } from '../../../core/configuration/revisions';
import { fail } from '../../../core/errors';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { versionTag } from '../../../core/http/etag';
import { oneOf, orNull, shape } from '../../../core/http/shape';

/** The fields of a revision in the endpoints' answers and the OpenAPI document. */

export const SOURCE = oneOf('file', 'database');

export const PROBLEM = {
  type: 'object',
  required: ['file', 'message'],
  properties: { file: shape.text, line: shape.integer, column: shape.integer, message: shape.text },
};

export const REVISION = {
  number: shape.integer,
  revision: shape.text,
  createdAt: shape.time,
  actor: shape.text,
  note: orNull(shape.text),
  restores: orNull(shape.integer),
};

/** Returns the header with the number of a revision. */
export function etagOf(number: number): { ETag: string } {
  return { ETag: versionTag(number) };
}

/** Finds an applied revision by its number or its revision. @throws NOT_FOUND */
export async function requireRevision({ database }: PluginGateway, name: string | undefined): Promise<AppliedRevision> {
  const found = await findRevision(database, name ?? '');
  if (found === undefined) throw fail('NOT_FOUND', { message: 'The revision of the configuration does not exist.' });
  return found;
}
