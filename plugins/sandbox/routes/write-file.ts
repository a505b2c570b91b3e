import { fail } from '../../../core/errors';
import { sendJson } from '../../../core/http';
import type { Route } from '../../../core/plugin';
import type { Settings } from '../../../core/settings';
import type { InsideService } from '../inside';
import { FILE_ERRORS, MOST_AS_JSON, PATH_MEANING, WRITTEN, withFiles } from './file-access';
import { readBody } from './read-body';

const BODY = {
  type: 'object',
  additionalProperties: false,
  required: ['path', 'content'],
  properties: {
    path: { type: 'string', minLength: 1, description: PATH_MEANING },
    content: { type: 'string' },
    encoding: { type: 'string', enum: ['utf8', 'base64'], default: 'utf8' },
  },
  example: { path: '/data/note', content: 'hello' },
} as const;

/** Base64 needs a third more, and JSON may write one byte as six. */
const MOST_BODY_BYTES = 2 * MOST_AS_JSON;

export function writeFile(service: InsideService): Route {
  const read = readBody<Settings<typeof BODY>>(BODY, { maxBytes: MOST_BODY_BYTES, tooLarge: 'FILE_TOO_LARGE' });
  return {
    listener: 'public',
    auth: 'key',
    method: 'POST',
    path: '/v1/sandboxes/{id}/files',
    summary: 'Writes a file, with the folders on the way.',
    body: BODY,
    answers: WRITTEN,
    errors: FILE_ERRORS,
    handle: async ({ key, params }, request, response) => {
      const { path, content, encoding } = await read(request);
      const bytes = decode(content, encoding);
      if (bytes.length > MOST_AS_JSON) throw fail('FILE_TOO_LARGE', { param: 'content', message: TOO_LARGE });
      await withFiles(service, { accountId: key.accountId, sandboxId: params['id'] }, 'FILE_WRITE', (running) =>
        running.driver.files.write(running.reference, path, bytes),
      );
      sendJson(response, 201, { path, byteLength: bytes.length });
    },
  };
}

const TOO_LARGE = `A file of more than ${MOST_AS_JSON} bytes is written raw, with PUT …/files/content.`;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

function decode(content: string, encoding: 'utf8' | 'base64'): Buffer {
  if (encoding === 'base64' && !BASE64.test(content)) {
    throw fail('INVALID_FIELD', { param: 'content', message: 'content: expected base64' });
  }
  return Buffer.from(content, encoding);
}
