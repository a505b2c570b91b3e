import type { IncomingMessage, ServerResponse } from 'node:http';
import { TEXT } from '../../../core/api/fields';
import { changesBetween, meaningOf } from '../../../core/configuration/meaning';
import { type AppliedRevision, applyRevision, newestRevision } from '../../../core/configuration/revisions';
import { ConfigurationError } from '../../../core/configuration/yaml-file';
import { fail } from '../../../core/errors';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { readIfMatch } from '../../../core/http/etag';
import { sendJson } from '../../../core/http/http';
import { listOf, object, objectWith, orNull, shape } from '../../../core/http/shape';
import type { Operator } from '../../../core/operators/operators';
import { etagOf, PROBLEM } from './config-revision';

/** What the endpoints that change the configuration of every node have in common. */

/** The fields that every change may have. */
export const CHANGE_FIELDS = {
  dryRun: { description: 'Changes nothing.', type: 'boolean', default: false },
  force: { description: 'Apply it in spite of its `objections`.', type: 'boolean', default: false },
  note: TEXT,
} as const;

export const CHANGE_HEADERS = { 'If-Match': 'Only if the newest applied revision is still the one of this `ETag`.' };

export const CHANGE_ERRORS = [
  'CONFIGURATION_FROM_FILES',
  'CONFIGURATION_INVALID',
  'CHANGE_NEEDS_FORCE',
  'PRECONDITION_FAILED',
] as const;

const CHANGE = object({
  applied: shape.yes,
  number: orNull(shape.integer),
  newest: shape.integer,
  revision: shape.text,
  base: objectWith({ revision: shape.text }, { number: shape.integer }),
  changes: listOf(object({ what: shape.text, before: orNull(shape.text), after: orNull(shape.text) })),
  warnings: listOf(PROBLEM),
  objections: shape.texts,
});

export const CHANGE_ANSWERS = {
  200: {
    description: 'What it would change (dryRun), or that it is the newest already.',
    schema: CHANGE,
    headers: { ETag: 'The number of the newest applied revision; for `If-Match`.' },
  },
  201: {
    description: 'It is applied: every node activates it within a second.',
    schema: CHANGE,
    headers: { ETag: 'Its number.' },
  },
};

interface Wanted extends Pick<AppliedRevision, 'text' | 'restores'> {
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly note?: string;
}

/**
 * Applies a configuration, or reports what it would change. A dry run makes the same checks and omits only the storing, so it
 * cannot accept what an apply would reject.
 */
export async function changeConfig(
  gateway: PluginGateway,
  wanted: Wanted,
  { actor }: Operator,
  request: IncomingMessage,
  response: ServerResponse,
) {
  const { database, liveConfiguration: live, changeChecks } = gateway;
  const { text, restores, dryRun, force, note = null } = wanted;
  const next = readConfiguration(gateway, text);
  const base = live.current;
  const checks = await Promise.all(changeChecks.map((check) => check(base, next)));
  const objections = checks.flat();
  const answer = {
    revision: next.revision,
    base: { number: base.number, revision: base.revision },
    changes: changesBetween(meaningOf(base), meaningOf(next)),
    warnings: next.warnings,
    objections,
  };
  const onlyAfter = readIfMatch(request);
  if (dryRun) {
    const newest = await newestRevision(database);
    const number = newest?.revision === next.revision ? newest.number : null;
    const last = newest?.number ?? 0;
    if (number === null && onlyAfter?.includes(last) === false) throw overtaken(newest);
    return sendJson(response, 200, { applied: false, number, newest: last, ...answer }, etagOf(last));
  }
  if (objections.length > 0 && !force) throw fail('CHANGE_NEEDS_FORCE', { details: { objections } });
  const { revision } = next;
  const applied = await applyRevision(database, {
    revision,
    text,
    actor,
    note,
    restores,
    objections,
    onlyAfter,
  });
  if (applied.outcome === 'overtaken') throw overtaken(applied.by);
  // This node loads the revision now. If it cannot, the revision is applied all the same, and this node reports the failure like every other.
  await live.reload('revision').catch(() => undefined);
  const { number } = applied;
  const isNew = applied.outcome === 'applied';
  sendJson(response, isNew ? 201 : 200, { applied: isNew, number, newest: number, ...answer }, etagOf(number));
}

function readConfiguration({ configurationSource: source, liveConfiguration: live }: PluginGateway, text: string) {
  try {
    return source.check(text);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const details = { revision: live.current.revision, problems: error.problems };
    throw fail('CONFIGURATION_INVALID', { details });
  }
}

/** Rejects the request if the configuration comes from files. @throws CONFIGURATION_FROM_FILES */
export function refuseFiles({ configurationSource: source }: PluginGateway): void {
  if (source.is === 'file') throw fail('CONFIGURATION_FROM_FILES', { message: CHANGE_THE_FILE });
}

const CHANGE_THE_FILE =
  'This gateway reads its configuration from files: change gateway.config.yml on every node and reload it (POST /admin/v1/config/reload, SIGHUP, or within two seconds by itself), or set config.source to database in system.config.yml.';

function overtaken(by: Omit<AppliedRevision, 'text'> | undefined) {
  if (by === undefined) return fail('PRECONDITION_FAILED', { message: 'No revision has been applied yet.' });
  const { number, revision, actor, createdAt } = by;
  return fail('PRECONDITION_FAILED', {
    message: `Revision ${number} (${revision}) was applied meanwhile, by ${actor} at ${createdAt.toISOString()}. Check what your revision would change now, and apply it again.`,
    details: { number, revision, actor, createdAt },
  });
}
