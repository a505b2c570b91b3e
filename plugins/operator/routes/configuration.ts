import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/base/errors';
import { listConfigurationNodes } from '../../../core/configuration/nodes';
import {
  type AppliedRevision,
  findRevision,
  listRevisions,
  newestRevision,
} from '../../../core/configuration/revisions';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf } from '../../../core/http/query';
import { listOf, object, oneOf, orNull, pageShape, shape } from '../../../core/http/shape';
import {
  CHANGE_ANSWERS,
  CHANGE_ERRORS,
  CHANGE_FIELDS,
  CHANGE_HEADERS,
  changeConfig,
  etagOf,
  PROBLEM,
  refuseFiles,
} from '../change';

/** The fields of a revision in the endpoints' answers and the OpenAPI document. */

const SOURCE = oneOf('file', 'database');

const REVISION = {
  number: shape.integer,
  revision: shape.text,
  createdAt: shape.time,
  actor: shape.text,
  note: orNull(shape.text),
  restores: orNull(shape.integer),
};

/** Finds an applied revision by its number or by its hash. @throws NOT_FOUND */
async function requireRevision({ database }: PluginGateway, name: string): Promise<AppliedRevision> {
  const found = await findRevision(database, name);
  if (found === undefined) throw fail('NOT_FOUND', { message: 'The revision of the configuration does not exist.' });
  return found;
}

const MAX_BODY_BYTES = 2 * 1024 * 1024;

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
    ...CHANGE_FIELDS,
  },
  example: { text: 'http: { port: 8080 }\n# and all the rest of the file\n', dryRun: true },
} as const;

const ROLLBACK = {
  type: 'object',
  additionalProperties: false,
  properties: CHANGE_FIELDS,
  example: { note: 'as it was on Monday' },
} as const;

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

export function configurationRoutes(gateway: PluginGateway): readonly Route[] {
  const { database, liveConfiguration: live, configurationSource: source } = gateway;
  return [
    adminRoute('POST /admin/v1/config/reload', {
      role: 'write',
      summary: 'Reload gateway.config.yml or the newest applied revision; an invalid one changes nothing.',
      answers: {
        200: {
          description: 'It is in force.',
          schema: object({ revision: shape.text, before: shape.text, restartNeeded: shape.texts }),
        },
      },
      errors: ['CONFIGURATION_INVALID'],
      handle: async ({ operator }) => {
        const outcome = await live.reload(operator.actor);
        if (outcome.outcome === 'refused')
          throw fail('CONFIGURATION_INVALID', { details: { revision: outcome.revision, problems: outcome.problems } });
        const { before, revision, restartNeeded } = outcome;
        return { revision, before, restartNeeded };
      },
    }),
    adminRoute('GET /admin/v1/config/revision', {
      role: 'read',
      summary: 'The active configuration, since when it is active, and why the last reload was rejected.',
      answers: {
        200: {
          description: 'The revision, and which changes are not active.',
          schema: object({
            source: SOURCE,
            number: orNull(shape.integer),
            revision: shape.text,
            since: shape.time,
            restartNeeded: shape.texts,
            lastFailure: orNull(
              object({ at: shape.time, actor: shape.text, number: orNull(shape.integer), problems: listOf(PROBLEM) }),
            ),
          }),
        },
      },
      handle: async () => {
        const { current, since, restartNeeded, lastFailure } = live;
        return {
          source: source.kind,
          number: current.number ?? null,
          revision: current.revision,
          since,
          restartNeeded,
          lastFailure: lastFailure === undefined ? null : { ...lastFailure, number: lastFailure.number ?? null },
        };
      },
    }),
    adminRoute('POST /admin/v1/config/revisions', {
      role: 'write',
      summary: 'Apply a configuration to every node, or with dryRun report what it would change.',
      headers: CHANGE_HEADERS,
      body: APPLY,
      maxBodyBytes: MAX_BODY_BYTES,
      answers: CHANGE_ANSWERS,
      errors: CHANGE_ERRORS,
      handle: async ({ body, operator }, request, response) => {
        refuseFiles(gateway);
        await changeConfig(gateway, { ...body, restores: null }, operator, request, response);
      },
    }),
    adminRoute('POST /admin/v1/config/revisions/{revision}/rollback', {
      role: 'write',
      summary: 'Apply an earlier configuration again, by its number or its revision.',
      headers: CHANGE_HEADERS,
      body: ROLLBACK,
      answers: CHANGE_ANSWERS,
      errors: CHANGE_ERRORS,
      handle: async ({ body, params, operator }, request, response) => {
        refuseFiles(gateway);
        const { text, number } = await requireRevision(gateway, params.revision);
        await changeConfig(gateway, { ...body, text, restores: number }, operator, request, response);
      },
    }),
    adminRoute('GET /admin/v1/config/revisions', {
      role: 'read',
      summary: 'Every configuration that was applied, newest first.',
      query: PAGE_READERS,
      answers: { 200: { description: 'A page of revisions.', schema: pageShape(object(REVISION)) } },
      handle: ({ filters }) => listRevisions(database, pageOf(filters)),
    }),
    adminRoute('GET /admin/v1/config/revisions/{revision}', {
      role: 'read',
      summary: 'An applied configuration with its text, by its number or its revision.',
      answers: {
        200: {
          description: 'The revision; variables stand in its text as they are written.',
          schema: object({ ...REVISION, text: shape.text }),
          headers: { ETag: 'Its number; of the newest, for `If-Match`.' },
        },
      },
      handle: async ({ params }, _request, response) => {
        const found = await requireRevision(gateway, params.revision);
        sendJson(response, 200, found, etagOf(found.number));
      },
    }),
    adminRoute('GET /admin/v1/config/status', {
      role: 'read',
      summary: 'The active configuration of each node, and why a node rejected one.',
      answers: {
        200: {
          description: 'The newest applied revision (null if the configuration comes from files) and every node.',
          schema: object({
            source: SOURCE,
            newest: orNull(object({ number: shape.integer, revision: shape.text })),
            nodes: listOf(NODE),
          }),
        },
      },
      handle: async () => {
        const newest = source.kind === 'file' ? undefined : await newestRevision(database);
        return {
          source: source.kind,
          newest: newest === undefined ? null : { number: newest.number, revision: newest.revision },
          nodes: await listConfigurationNodes(database),
        };
      },
    }),
  ];
}
