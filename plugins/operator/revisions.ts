import type { IncomingMessage, ServerResponse } from 'node:http';
import { changesBetween, meaningOf } from '../../core/configuration-meaning';
import { listConfigurationNodes } from '../../core/configuration-nodes';
import {
  type AppliedRevision,
  applyRevision,
  findRevision,
  listRevisions,
  newestRevision,
} from '../../core/configuration-revisions';
import { fail } from '../../core/errors';
import { TEXT } from '../../core/fields';
import type { Gateway } from '../../core/gateway';
import { jsonBody, largeJsonBody, sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery } from '../../core/query';
import type { Settings } from '../../core/settings';
import { listOf, object, objectWith, oneOf, orNull, pageOf as pageShape, shape } from '../../core/shape';
import { ConfigurationError } from '../../core/yaml-file';
import { ADMIN } from './fields';

/** The configuration as revisions: applied here, followed by every node. */
export function revisionRoutes(gateway: Gateway): Route[] {
  return [applyRoute(gateway), rollbackRoute(gateway), listRoute(gateway), showRoute(gateway), statusRoute(gateway)];
}

function applyRoute(gateway: Gateway): Route {
  const readApply = largeJsonBody<Settings<typeof APPLY>>(APPLY, BODY_AT_MOST);
  return {
    listener: 'admin',
    method: 'POST',
    path: '/admin/v1/config/revisions',
    summary: 'Apply a configuration to every node, or with dryRun say what it would change.',
    headers: IF_MATCH,
    body: APPLY,
    answers: APPLY_ANSWERS,
    errors: CHANGE_ERRORS,
    handle: async (visit, request, response) => {
      const wanted = await readApply(request, visit);
      refuseFiles(gateway);
      await change(gateway, { ...wanted, restores: null }, request, response);
    },
  };
}

function rollbackRoute(gateway: Gateway): Route {
  const readRollback = jsonBody<Settings<typeof ROLLBACK>>(ROLLBACK);
  return {
    listener: 'admin',
    method: 'POST',
    path: '/admin/v1/config/revisions/{revision}/rollback',
    summary: 'Apply an earlier configuration again, by its number or its revision.',
    headers: IF_MATCH,
    body: ROLLBACK,
    answers: APPLY_ANSWERS,
    errors: CHANGE_ERRORS,
    handle: async ({ params }, request, response) => {
      const wanted = await readRollback(request);
      refuseFiles(gateway);
      const { text, number } = await find(gateway, params['revision']);
      await change(gateway, { ...wanted, text, restores: number }, request, response);
    },
  };
}

function listRoute({ database }: Gateway): Route {
  return {
    listener: 'admin',
    method: 'GET',
    path: '/admin/v1/config/revisions',
    summary: 'Every configuration that was applied, newest first.',
    query: PAGE_READERS,
    answers: { 200: { description: 'A page of revisions.', schema: pageShape(object(REVISION)) } },
    handle: async ({ query }, _request, response) =>
      sendJson(response, 200, await listRevisions(database, pageOf(readQuery(query, PAGE_READERS)))),
  };
}

function showRoute(gateway: Gateway): Route {
  return {
    listener: 'admin',
    method: 'GET',
    path: '/admin/v1/config/revisions/{revision}',
    summary: 'An applied configuration with its text, by its number or its revision.',
    answers: {
      200: {
        description: 'The revision; variables stand in its text as they are written.',
        schema: object({ ...REVISION, text: shape.text }),
        headers: { ETag: 'Its number; of the newest, for `If-Match`.' },
      },
    },
    handle: async ({ params }, _request, response) => {
      const found = await find(gateway, params['revision']);
      sendJson(response, 200, found, etag(found.number));
    },
  };
}

function statusRoute({ database, configurationSource: source }: Gateway): Route {
  return {
    listener: 'admin',
    method: 'GET',
    path: '/admin/v1/config/status',
    summary: 'Which configuration each node has in force, and what it could not take.',
    answers: {
      200: {
        description: 'The newest applied revision, null with files, and every node that is there.',
        schema: object({
          source: SOURCE,
          newest: orNull(object({ number: shape.integer, revision: shape.text })),
          nodes: listOf(NODE),
        }),
      },
    },
    handle: async (_visit, _request, response) => {
      const newest = source.is === 'file' ? undefined : await newestRevision(database);
      sendJson(response, 200, {
        source: source.is,
        newest: newest === undefined ? null : { number: newest.number, revision: newest.revision },
        nodes: await listConfigurationNodes(database),
      });
    },
  };
}

/** Everything but the storing is the same for a dry run, so that it cannot say yes to what is refused then. */
async function change(gateway: Gateway, wanted: Wanted, { headers }: IncomingMessage, response: ServerResponse) {
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
  if (dryRun) {
    const newest = await newestRevision(database);
    const number = newest?.revision === next.revision ? newest.number : null;
    const last = newest?.number ?? 0;
    return sendJson(response, 200, { applied: false, number, newest: last, ...answer }, etag(last));
  }
  if (objections.length > 0 && !force) throw fail('CHANGE_NEEDS_FORCE', { details: { objections } });
  const onlyAfter = readIfMatch(headers['if-match']);
  const { revision } = next;
  const applied = await applyRevision(database, {
    ...{ revision, text, actor: ADMIN, note, restores, objections, onlyAfter },
  });
  if (applied.outcome === 'overtaken') throw overtaken(applied.by);
  // This node takes it now. Where it cannot, it is applied all the same, and this node says so like every other.
  await live.reload('revision').catch(() => undefined);
  const { number } = applied;
  const isNew = applied.outcome === 'applied';
  sendJson(response, isNew ? 201 : 200, { applied: isNew, number, newest: number, ...answer }, etag(number));
}

function readConfiguration({ configurationSource: source, liveConfiguration: live }: Gateway, text: string) {
  try {
    return source.check(text);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const details = { revision: live.current.revision, problems: error.problems };
    throw fail('CONFIGURATION_INVALID', { details });
  }
}

async function find({ database }: Gateway, name: string | undefined): Promise<AppliedRevision> {
  const found = await findRevision(database, name ?? '');
  if (found === undefined) throw fail('NOT_FOUND', { message: 'There is no such revision of the configuration.' });
  return found;
}

function refuseFiles({ configurationSource: source }: Gateway): void {
  if (source.is === 'file') throw fail('CONFIGURATION_FROM_FILES', { message: CHANGE_THE_FILE });
}

interface Wanted extends Pick<AppliedRevision, 'text' | 'restores'> {
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly note?: string;
}

const BODY_AT_MOST = 2 * 1024 * 1024;

const HOW = {
  dryRun: { description: 'Changes nothing.', type: 'boolean', default: false },
  force: { description: 'Although something speaks against it (`objections`).', type: 'boolean', default: false },
  note: TEXT,
} as const;

const APPLY = {
  type: 'object',
  additionalProperties: false,
  required: ['text'],
  properties: {
    text: {
      description: 'gateway.config.yml, with its variables as they are written.',
      type: 'string',
      pattern: '^[^\\u0000\\p{Cs}]*$',
      'x-expected': 'text that can be stored',
    },
    ...HOW,
  },
  example: { text: 'http: { port: 8080 }\n# and all the rest of the file\n', dryRun: true },
} as const;

const ROLLBACK = {
  type: 'object',
  additionalProperties: false,
  properties: HOW,
  example: { note: 'as it was on Monday' },
} as const;

const IF_MATCH = { 'If-Match': 'Only if the newest applied revision is still the one of this `ETag`.' };

function etag(number: number): { ETag: string } {
  return { ETag: `"${number}"` };
}

/** The numbers that `If-Match` lets through; undefined for any. @throws INVALID_FIELD */
function readIfMatch(text: string | undefined): readonly number[] | undefined {
  if (text === undefined || text.trim() === '*') return undefined;
  return text.split(',').map((part) => {
    const number = /^\s*"(\d{1,9})"\s*$/.exec(part)?.[1];
    if (number !== undefined) return Number(number);
    throw fail('INVALID_FIELD', { param: 'If-Match', message: 'If-Match: expected the ETag of an earlier answer' });
  });
}

function overtaken(by: Omit<AppliedRevision, 'text'> | undefined) {
  if (by === undefined) return fail('PRECONDITION_FAILED', { message: 'No revision was applied yet.' });
  const { number, revision, actor, createdAt } = by;
  return fail('PRECONDITION_FAILED', {
    message: `Revision ${number} (${revision}) was applied meanwhile, by ${actor} at ${createdAt.toISOString()}. Look at what yours would change now, and apply it again.`,
    details: { number, revision, actor, createdAt },
  });
}

const CHANGE_THE_FILE =
  'This gateway takes its configuration from files: change gateway.config.yml on every node and reload it (POST /admin/v1/config/reload, SIGHUP, or within two seconds by itself), or set config.source to database in system.config.yml.';

const CHANGE_ERRORS = [
  'CONFIGURATION_FROM_FILES',
  'CONFIGURATION_INVALID',
  'CHANGE_NEEDS_FORCE',
  'PRECONDITION_FAILED',
] as const;

const SOURCE = oneOf('file', 'database');

export const PROBLEM = {
  type: 'object',
  required: ['file', 'message'],
  properties: { file: shape.text, line: shape.integer, column: shape.integer, message: shape.text },
};

const REVISION = {
  number: shape.integer,
  revision: shape.text,
  createdAt: shape.time,
  actor: shape.text,
  note: orNull(shape.text),
  restores: orNull(shape.integer),
};

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

const APPLY_ANSWERS = {
  200: {
    description: 'What it would change (dryRun), or that it was the newest already.',
    schema: CHANGE,
    headers: { ETag: 'The number of the newest applied revision; for `If-Match`.' },
  },
  201: {
    description: 'It is applied: every node takes it within a second.',
    schema: CHANGE,
    headers: { ETag: 'Its number.' },
  },
};

const NODE = object({
  node: shape.uuid,
  name: shape.text,
  startedAt: shape.time,
  seenAt: shape.time,
  source: SOURCE,
  number: orNull(shape.integer),
  revision: shape.text,
  since: shape.time,
  restartNeeded: shape.texts,
  failure: orNull(object({ at: shape.time, number: orNull(shape.integer), problems: listOf(PROBLEM) })),
});
