import { isUtf8 } from 'node:buffer';
import { buffer } from 'node:stream/consumers';
import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import type { AnswerRoom } from '../../../core/http/buffered-bytes';
import { roomOf, sendJson } from '../../../core/http/http';
import { readQuery, wordReader } from '../../../core/http/query';
import { object, oneOf, shape } from '../../../core/http/shape';
import type { RunningSandbox } from '../asking/access';
import type { InsideService } from '../inside';
import { exactly, FILE_ERRORS, MOST_AS_JSON, PATH, requiredPath, withFiles } from './file-access';

const ENCODINGS = ['utf8', 'base64'] as const;
type Encoding = (typeof ENCODINGS)[number];

const FILTERS = { ...PATH, encoding: wordReader(ENCODINGS, { default: 'utf8' }) };

const FILE = object({
  path: shape.text,
  content: shape.text,
  encoding: oneOf(...ENCODINGS),
  byteLength: shape.integer,
});

export function readFileRoute(service: InsideService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes/{id}/files',
    summary: 'Reads a file as text, or as base64.',
    query: FILTERS,
    answers: { 200: { description: 'The file.', schema: FILE } },
    errors: FILE_ERRORS,
    handle: async ({ key, params, query }, request, response) => {
      const { path: asked, encoding = 'utf8' } = readQuery(query, FILTERS);
      const path = requiredPath(asked);
      const bytes = await withFiles(
        service,
        { accountId: key.accountId, sandboxId: params['id'], headers: request.headers },
        'FILE_READ',
        (running) => readWhole(running, path, encoding, roomOf(response)),
      );
      sendJson(response, 200, { path, content: bytes.toString(encoding), encoding, byteLength: bytes.length });
    },
  };
}

async function readWhole(
  { driver, reference }: RunningSandbox,
  path: string,
  encoding: Encoding,
  room: AnswerRoom | undefined,
): Promise<Buffer> {
  const file = await driver.files.read(reference, path);
  const { byteLength } = file;
  if (byteLength > MOST_AS_JSON) {
    file.content.destroy();
    throw fail('FILE_TOO_LARGE', { message: TOO_LARGE, details: { byteLength } });
  }
  if ((await room?.arrive(COPIES * byteLength)) === false) {
    file.content.destroy();
    throw fail('OVERLOADED', { retryAfterSeconds: 1 });
  }
  const bytes = await buffer(exactly(file));
  if (encoding === 'utf8' && !isUtf8(bytes)) throw fail('INVALID_FIELD', { param: 'encoding', message: NOT_TEXT });
  return bytes;
}

/** A file is in memory as bytes, as text and as JSON until the JSON is sent. */
const COPIES = 4;
const TOO_LARGE = `The file has more than ${MOST_AS_JSON} bytes. Read it with GET …/files/content.`;
const NOT_TEXT = 'encoding: the file is not UTF-8 text; request it with base64';
