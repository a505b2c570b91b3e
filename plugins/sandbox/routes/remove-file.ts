import type { Route } from '../../../core/api/route';
import { readQuery } from '../../../core/http/query';
import type { InsideService } from '../inside';
import { FILE_ERRORS, PATH, requiredPath, withFiles } from './file-access';

export function removeFileRoute(service: InsideService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'DELETE',
    path: '/v1/sandboxes/{id}/files',
    summary: 'Removes a file, or a folder with all that is in it.',
    query: PATH,
    answers: { 204: { description: 'It is removed.' } },
    errors: FILE_ERRORS,
    handle: async ({ key, params, query }, request, response) => {
      const path = requiredPath(readQuery(query, PATH).path);
      await withFiles(
        service,
        { accountId: key.accountId, sandboxId: params['id'], headers: request.headers },
        'FILE_DELETE',
        ({ driver, reference }) => driver.files.remove(reference, path),
      );
      response.writeHead(204).end();
    },
  };
}
