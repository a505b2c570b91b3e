import type { IncomingMessage, ServerResponse } from 'node:http';
import { TEXT } from '../../core/api/fields';
import { fail } from '../../core/base/errors';
import type { Configuration } from '../../core/configuration/configuration';
import { changesBetween, configurationFacts } from '../../core/configuration/configuration-facts';
import { type AppliedRevision, applyRevision, newestRevision } from '../../core/configuration/revisions';
import { ConfigurationError } from '../../core/configuration/yaml-file';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { readIfMatch, versionTag } from '../../core/http/etag';
import { sendJson } from '../../core/http/http';
import { listOf, object, objectWith, orNull, shape } from '../../core/http/shape';
import type { Operator } from '../../core/operators/operators';

/** The common parts of the endpoints that change the configuration of every node. */

/** The fields that the request of every change may have. */
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

export const PROBLEM = {
  type: 'object',
  required: ['file', 'message'],
  properties: { file: shape.text, line: shape.integer, column: shape.integer, message: shape.text },
};

/** The fields of the answer to a change. */
export const CHANGE_MEMBERS = {
  applied: shape.yes,
  number: orNull(shape.integer),
  newest: shape.integer,
  revision: shape.text,
  base: objectWith({ revision: shape.text }, { number: shape.integer }),
  changes: listOf(object({ what: shape.text, before: orNull(shape.text), after: orNull(shape.text) })),
  warnings: listOf(PROBLEM),
  objections: shape.texts,
};

export const CHANGE_ANSWERS = {
  200: {
    description: 'What it would change (dryRun), or that it is the newest already.',
    schema: object(CHANGE_MEMBERS),
    headers: { ETag: 'The number of the newest applied revision; for `If-Match`.' },
  },
  201: {
    description: 'It is applied: every node activates it within a second.',
    schema: object(CHANGE_MEMBERS),
    headers: { ETag: 'Its number.' },
  },
};

interface Wanted extends Pick<AppliedRevision, 'text' | 'restores'> {
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly note?: string;
}

/**
 * Applies a configuration, or reports what it would change. A dry run makes the same checks but does not store the configuration. It
 * therefore never accepts what an apply would reject.
 */
export async function changeConfig(
  gateway: PluginGateway,
  wanted: Wanted,
  { actor }: Operator,
  request: IncomingMessage,
  response: ServerResponse,
) {
  const { database, liveConfiguration: live } = gateway;
  const { text, restores, dryRun, force, note = null } = wanted;
  const next = checked(gateway, (check) => check(text));
  const { objections, ...plan } = await planChange(gateway, next);
  const answer = { ...plan, objections };
  const onlyAfter = readIfMatch(request);
  if (dryRun) {
    const newest = await newestRevision(database);
    const number = newest?.revision === next.revision ? newest.number : null;
    const last = newest?.number ?? 0;
    if (number === null && onlyAfter?.includes(last) === false) throw overtaken(newest);
    return sendJson(response, 200, { applied: false, number, newest: last, ...answer }, etagOf(last));
  }
  if (!force) refuseObjections(objections);
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
  // Load the revision on this node now. If that fails, the revision stays applied, and this node reports the failure as every node does.
  await live.reload('revision').catch(() => undefined);
  const { number } = applied;
  const isNew = applied.outcome === 'applied';
  sendJson(response, isNew ? 201 : 200, { applied: isNew, number, newest: number, ...answer }, etagOf(number));
}

/** Returns what a configuration would change of the one in force, and the objections to it. */
export async function planChange(
  { liveConfiguration: { current: base }, changeChecks }: PluginGateway,
  next: Configuration,
) {
  const checks = await Promise.all(changeChecks.map((check) => check(base, next)));
  return {
    revision: next.revision,
    base: { number: base.number, revision: base.revision },
    changes: changesBetween(configurationFacts(base), configurationFacts(next)),
    warnings: next.warnings,
    objections: checks.flat(),
  };
}

/** @throws CHANGE_NEEDS_FORCE if there are objections */
export function refuseObjections(objections: readonly string[]): void {
  if (objections.length > 0) throw fail('CHANGE_NEEDS_FORCE', { details: { objections } });
}

/** Runs `read` with the function that checks a configuration's text. @throws CONFIGURATION_INVALID if the text has mistakes */
export function checked<T>(
  { configurationSource: source, liveConfiguration: live }: PluginGateway,
  read: (check: (text: string) => Configuration) => T,
): T {
  try {
    return read(source.check);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const details = { revision: live.current.revision, problems: error.problems };
    throw fail('CONFIGURATION_INVALID', { details });
  }
}

/** Rejects the request if the configuration comes from files. @throws CONFIGURATION_FROM_FILES */
export function refuseFiles({ configurationSource: source }: PluginGateway): void {
  if (source.kind === 'file') throw fail('CONFIGURATION_FROM_FILES', { message: CHANGE_THE_FILE });
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

/** Returns the `ETag` header for the number of a revision. */
export function etagOf(number: number): { ETag: string } {
  return { ETag: versionTag(number) };
}
