import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import {
  CHANGE_ANSWERS,
  CHANGE_ERRORS,
  CHANGE_FIELDS,
  CHANGE_HEADERS,
  changeConfig,
  refuseFiles,
} from './config-change';
import { requireRevision } from './config-revision';

const ROLLBACK = {
  type: 'object',
  additionalProperties: false,
  properties: CHANGE_FIELDS,
  example: { note: 'as it was on Monday' },
} as const;

export function rollBackConfigRoute(gateway: PluginGateway): Route {
  const readRollback = jsonBody<Settings<typeof ROLLBACK>>(ROLLBACK);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/config/revisions/{revision}/rollback',
    summary: 'Apply an earlier configuration again, by its number or its revision.',
    headers: CHANGE_HEADERS,
    body: ROLLBACK,
    answers: CHANGE_ANSWERS,
    errors: CHANGE_ERRORS,
    handle: async ({ params, operator }, request, response) => {
      const wanted = await readRollback(request);
      refuseFiles(gateway);
      const { text, number } = await requireRevision(gateway, params['revision']);
      await changeConfig(gateway, { ...wanted, text, restores: number }, operator, request, response);
    },
  };
}
