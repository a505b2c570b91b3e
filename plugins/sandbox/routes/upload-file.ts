import type { IncomingMessage } from 'node:http';
import { fail, GatewayError } from '../../../core/errors';
import { readBytes, sendJson } from '../../../core/http';
import type { Route } from '../../../core/plugin';
import { readQuery } from '../../../core/query';
import type { InsideService } from '../inside';
import { BYTES, FILE_ERRORS, MOST_UPLOADED, PATH, requiredPath, WRITTEN, withFiles } from './file-access';

export function uploadFile(service: InsideService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'PUT',
    path: '/v1/sandboxes/{id}/files/content',
    summary: 'Writes a file with the bytes of the body.',
    query: PATH,
    body: BYTES,
    bodyType: 'application/octet-stream',
    answers: WRITTEN,
    errors: FILE_ERRORS,
    handle: async ({ key, params, query }, request, response) => {
      const path = requiredPath(readQuery(query, PATH).path);
      const bytes = await readFile(request);
      await withFiles(
        service,
        { accountId: key.accountId, sandboxId: params['id'] },
        'FILE_WRITE',
        ({ driver, reference }) => driver.files.write(reference, path, bytes),
      );
      sendJson(response, 201, { path, byteLength: bytes.length });
    },
  };
}

/** @throws FILE_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, BODY_TIMEOUT */
async function readFile(request: IncomingMessage): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > MOST_UPLOADED) throw tooLarge();
  try {
    return await readBytes(request, MOST_UPLOADED);
  } catch (error) {
    throw error instanceof GatewayError && error.code === 'BODY_TOO_LARGE' ? tooLarge() : error;
  }
}

function tooLarge() {
  return fail('FILE_TOO_LARGE', { message: `A file of more than ${MOST_UPLOADED} bytes is not taken at once.` });
}
