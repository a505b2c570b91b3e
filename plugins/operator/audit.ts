import type { Knex } from 'knex';
import { listAudit } from '../../core/audit';
import { sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery, readText, readTime } from '../../core/query';
import { object, orNull, pageOf as pageShape, shape } from '../../core/shape';

const FILTER_READERS = { subject: readText, actor: readText, action: readText, from: readTime, to: readTime };

export function auditRoutes(database: Knex): Route[] {
  return [
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/audit',
      summary: 'Who changed what, newest first; filters subject (`key:<id>`), actor, action, from, to.',
      query: { ...FILTER_READERS, ...PAGE_READERS },
      answers: { 200: { description: 'A page of changes.', schema: pageShape(CHANGE) } },
      handle: async ({ query }, _request, response) => {
        const filters = readQuery(query, { ...FILTER_READERS, ...PAGE_READERS });
        sendJson(response, 200, await listAudit(database, filters, pageOf(filters)));
      },
    },
  ];
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
