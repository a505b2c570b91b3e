import type { Knex } from 'knex';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, readQuery, readText, readTime } from '../../../core/http/query';
import { object, orNull, pageOf as pageShape, shape } from '../../../core/http/shape';
import { listAudit } from '../../../core/storage/audit';

const FILTER_READERS = { subject: readText, actor: readText, action: readText, from: readTime, to: readTime };

export function listAuditRoute(database: Knex): Route {
  return {
    listener: 'admin',
    role: 'read',
    method: 'GET',
    path: '/admin/v1/audit',
    summary: 'Who changed what, newest first; filters subject (`key:<id>`), actor, action, from, to.',
    query: { ...FILTER_READERS, ...PAGE_READERS },
    answers: { 200: { description: 'A page of changes.', schema: pageShape(CHANGE) } },
    handle: async ({ query }, _request, response) => {
      const filters = readQuery(query, { ...FILTER_READERS, ...PAGE_READERS });
      sendJson(response, 200, await listAudit(database, filters, pageOf(filters)));
    },
  };
}

const CHANGE = object({
  id: shape.uuid,
  createdAt: shape.time,
  actor: shape.text,
  action: shape.text,
  subject: shape.text,
  before: orNull({ type: 'object' }),
  after: orNull({ type: 'object' }),
});
