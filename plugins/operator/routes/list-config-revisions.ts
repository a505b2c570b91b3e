import type { Knex } from 'knex';
import type { Route } from '../../../core/api/route';
import { listRevisions } from '../../../core/configuration/revisions';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery } from '../../../core/http/query';
import { object, pageOf as pageShape } from '../../../core/http/shape';
import { REVISION } from './config-revision';

export function listConfigRevisionsRoute(database: Knex): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/config/revisions',
    summary: 'Every configuration that was applied, newest first.',
    query: PAGE_READERS,
    answers: { 200: { description: 'A page of revisions.', schema: pageShape(object(REVISION)) } },
    handle: async ({ query }, _request, response) =>
      sendJson(response, 200, await listRevisions(database, pageOf(readQuery(query, PAGE_READERS)))),
  };
}
