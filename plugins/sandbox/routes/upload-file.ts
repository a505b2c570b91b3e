import type { IncomingMessage } from 'node:http';
import { fail } from '../../../core/errors';
import { sendJson } from '../../../core/http';
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
      const bytes = await readBytes(request);
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

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw fail('UNSUPPORTED_MEDIA_TYPE', { message: 'The body must not be compressed.' });
  }
  if (Number(request.headers['content-length'] ?? 0) > MOST_UPLOADED) throw tooLarge();
  const chunks: Buffer[] = [];
  let byteLength = 0;
  // Leaving the loop must not destroy the request: its answer would have nowhere to go.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    byteLength += chunk.length;
    if (byteLength > MOST_UPLOADED) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge() {
  return fail('FILE_TOO_LARGE', { message: `A file of more than ${MOST_UPLOADED} bytes is not taken at once.` });
}
