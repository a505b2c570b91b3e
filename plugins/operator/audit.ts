import type { Knex } from 'knex';
import { listAudit } from '../../core/audit';
import { sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery, readText } from '../../core/query';

export function auditRoutes(database: Knex): Route[] {
  return [
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/audit',
      summary: 'Who changed what, newest first; `subject` such as key:<id> narrows it.',
      handle: async ({ query }, _request, response) => {
        const filters = readQuery(query, { ...PAGE_READERS, subject: readText });
        sendJson(response, 200, await listAudit(database, { ...pageOf(filters), subject: filters.subject }));
      },
    },
  ];
}
