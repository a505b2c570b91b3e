import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import { sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import type { InsideService } from '../inside';
import { FILE_ERRORS, MOST_AS_JSON, PATH_MEANING, requireFiles, WRITTEN, withFiles } from './file-access';
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

/** The largest JSON body. Base64 needs a third more than the file, and JSON may write one byte as six. */
const MOST_BODY_BYTES = 2 * MOST_AS_JSON;

export function writeFileRoute(service: InsideService): Route {
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
    handle: async (visit, request, response) => {
      const place = { accountId: visit.accountId, sandboxId: visit.params['id'], headers: request.headers };
      await requireFiles(service, place);
      const { path, content, encoding } = await read(request, visit);
      const bytes = decode(content, encoding);
      if (bytes.length > MOST_AS_JSON) throw fail('FILE_TOO_LARGE', { param: 'content', message: TOO_LARGE });
      await withFiles(service, place, 'FILE_WRITE', (running) =>
        running.driver.files.write(running.reference, path, bytes),
      );
      sendJson(response, 201, { path, byteLength: bytes.length });
    },
  };
}

const TOO_LARGE = `The file has more than ${MOST_AS_JSON} bytes. Write it with PUT …/files/content.`;

function decode(content: string, encoding: 'utf8' | 'base64'): Buffer {
  if (encoding === 'base64' && !isBase64(content)) {
    throw fail('INVALID_FIELD', { param: 'content', message: 'content: expected base64' });
  }
  return Buffer.from(content, encoding);
}

/** Returns true for base64 with or without its padding. A single pattern for the whole text would need a stack as deep as the file is long. */
function isBase64(content: string): boolean {
  const padding = content.endsWith('==') ? 2 : content.endsWith('=') ? 1 : 0;
  const digits = content.length - padding;
  if (padding > 0 ? content.length % 4 !== 0 : digits % 4 === 1) return false;
  return !NO_BASE64_DIGIT.test(content.slice(0, digits));
}

const NO_BASE64_DIGIT = /[^A-Za-z0-9+/]/;
