import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { largeJsonBody } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import {
  CHANGE_ANSWERS,
  CHANGE_ERRORS,
  CHANGE_FIELDS,
  CHANGE_HEADERS,
  changeConfig,
  refuseFiles,
} from './config-change';

const BODY_AT_MOST = 2 * 1024 * 1024;

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

export function applyConfigRoute(gateway: PluginGateway): Route {
  const readApply = largeJsonBody<Settings<typeof APPLY>>(APPLY, BODY_AT_MOST);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/config/revisions',
    summary: 'Apply a configuration to every node, or with dryRun report what it would change.',
    headers: CHANGE_HEADERS,
    body: APPLY,
    answers: CHANGE_ANSWERS,
    errors: CHANGE_ERRORS,
    handle: async (visit, request, response) => {
      const wanted = await readApply(request, visit);
      refuseFiles(gateway);
      await changeConfig(gateway, { ...wanted, restores: null }, visit.operator, request, response);
    },
  };
}
