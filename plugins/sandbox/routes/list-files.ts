import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { integerReader, readQuery } from '../../../core/http/query';
import { listOf, object, oneOf, shape } from '../../../core/http/shape';
import type { InsideService } from '../inside';
import { LIST_LIMIT } from '../suppliers/supplier';
import { FILE_ERRORS, readPath, withFiles } from './file-access';

const FILTERS = { path: readPath, depth: integerReader(1, 100, { default: 2 }) };

const LIST = object({
  path: shape.text,
  items: listOf(
    object({
      path: shape.text,
      type: oneOf('file', 'folder', 'link', 'other'),
      byteLength: shape.integer,
      modifiedAt: shape.time,
    }),
  ),
  truncated: { type: 'boolean', description: `The folder has more than ${LIST_LIMIT} entries. List a smaller folder.` },
});

export function listFilesRoute(service: InsideService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes/{id}/files/list',
    summary: 'The entries of a folder, and of its subfolders.',
    query: FILTERS,
    answers: { 200: { description: 'The entries.', schema: LIST } },
    errors: FILE_ERRORS,
    handle: async ({ key, params, query }, request, response) => {
      const { path = '.', depth = 2 } = readQuery(query, FILTERS);
      const items = await withFiles(
        service,
        { accountId: key.accountId, sandboxId: params['id'], headers: request.headers },
        'FILE_LIST',
        ({ driver, reference }) => driver.files.list(reference, path, depth),
      );
      sendJson(response, 200, { path, items, truncated: items.length === LIST_LIMIT });
    },
  };
}
