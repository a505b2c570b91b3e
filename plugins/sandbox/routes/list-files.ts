import { sendJson } from '../../../core/http';
import type { Route } from '../../../core/plugin';
import { readInteger, readQuery } from '../../../core/query';
import { LIST_LIMIT } from '../../../core/supplier';
import type { InsideService } from '../inside';
import { readPath, withFiles } from './file-access';

const FILTERS = { path: readPath, depth: (text: string) => readInteger(text, 1, 100) };

export function listFiles(service: InsideService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes/{id}/files/list',
    summary: 'What is in a folder, and in the folders in it.',
    handle: async ({ key, params, query }, _request, response) => {
      const { path = '.', depth = 2 } = readQuery(query, FILTERS);
      const items = await withFiles(
        service,
        { accountId: key.accountId, sandboxId: params['id'] },
        'FILE_LIST',
        ({ driver, reference }) => driver.files.list(reference, path, depth),
      );
      sendJson(response, 200, { path, items, truncated: items.length === LIST_LIMIT });
    },
  };
}
