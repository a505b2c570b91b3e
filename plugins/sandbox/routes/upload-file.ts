import type { IncomingMessage } from 'node:http';
import type { Route } from '../../../core/api/route';
import { fail, GatewayError } from '../../../core/errors';
import type { BodyOwner } from '../../../core/http/buffered-bytes';
import { readBytes, sendJson } from '../../../core/http/http';
import { readQuery } from '../../../core/http/query';
import type { InsideService } from '../inside';
import { BYTES, FILE_ERRORS, MOST_UPLOADED, PATH, requiredPath, requireFiles, WRITTEN, withFiles } from './file-access';

export function uploadFileRoute(service: InsideService): Route {
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
    handle: async (visit, request, response) => {
      const path = requiredPath(readQuery(visit.query, PATH).path);
      const place = { accountId: visit.accountId, sandboxId: visit.params['id'], headers: request.headers };
      await requireFiles(service, place);
      const bytes = await readFile(request, visit);
      await withFiles(service, place, 'FILE_WRITE', ({ driver, reference }) =>
        driver.files.write(reference, path, bytes),
      );
      sendJson(response, 201, { path, byteLength: bytes.length });
    },
  };
}

/** Reads the uploaded bytes. @throws FILE_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, BODY_TIMEOUT */
async function readFile(request: IncomingMessage, owner: BodyOwner): Promise<Buffer> {
  try {
    return await readBytes(request, owner, MOST_UPLOADED);
  } catch (error) {
    throw error instanceof GatewayError && error.code === 'BODY_TOO_LARGE' ? tooLarge() : error;
  }
}

function tooLarge() {
  return fail('FILE_TOO_LARGE', {
    message: `The file has more than ${MOST_UPLOADED} bytes, the limit of one upload. Upload smaller files.`,
  });
}
