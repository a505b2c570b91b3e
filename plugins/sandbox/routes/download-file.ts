import { pipeline } from 'node:stream/promises';
import type { Route } from '../../../core/api/route';
import { readQuery } from '../../../core/http/query';
import type { InsideService } from '../inside';
import { BYTES, exactly, FILE_ERRORS, PATH, requiredPath, withFiles } from './file-access';

export function downloadFileRoute(service: InsideService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes/{id}/files/content',
    summary: "A file's bytes, of any size.",
    query: PATH,
    answers: { 200: { description: 'Its bytes.', schema: BYTES, mediaType: 'application/octet-stream' } },
    errors: FILE_ERRORS,
    handle: async ({ key, params, query }, request, response) => {
      const path = requiredPath(readQuery(query, PATH).path);
      const file = await withFiles(
        service,
        { accountId: key.accountId, sandboxId: params['id'], headers: request.headers },
        'FILE_READ',
        ({ driver, reference }) => driver.files.read(reference, path),
      );
      response.writeHead(200, {
        'content-type': 'application/octet-stream',
        'content-length': file.byteLength,
        // A browser must not show a customer's file as a page of the console's origin.
        'content-disposition': 'attachment',
        'content-security-policy': 'sandbox',
        'x-content-type-options': 'nosniff',
      });
      if (request.method === 'HEAD') {
        file.content.destroy();
        response.end();
        return;
      }
      await pipeline(exactly(file), response);
    },
  };
}
