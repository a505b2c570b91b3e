import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { Route } from '../../../core/api/route';
import { type ErrorCode, fail, GatewayError, invalidParam } from '../../../core/base/errors';
import type { Settings } from '../../../core/base/settings';
import type { AnswerRoom, BodyOwner } from '../../../core/http/buffered-bytes';
import { answerRoomOf, readBytes, sendJson } from '../../../core/http/http';
import { integerReader, reader, readQuery, required, wordReader } from '../../../core/http/query';
import { listOf, object, oneOf, shape } from '../../../core/http/shape';
import { findUnfinished, openRunning, operate, RUNNING_ERRORS, type RunningSandbox } from '../admission/access';
import type { OperationType } from '../lifecycle/states';
import type { SandboxService } from '../service';
import { type FileContent, LIST_LIMIT } from '../suppliers/supplier';
import { bodyReader, byKey, type KeyVisit } from './parts';

/** The largest file that an endpoint returns or accepts as JSON. A larger file needs the endpoints for raw bytes. */
const MAX_JSON_BYTES = 4 * 1_048_576;

/** The largest file that one upload may have. */
const MAX_UPLOAD_BYTES = 20 * 1_048_576;

const FILE_ERRORS: readonly ErrorCode[] = [...RUNNING_ERRORS, 'PATH_INVALID', 'FILE_NOT_FOUND', 'FILE_TOO_LARGE'];

/** The schema of a file's raw bytes. */
export const BYTES = { type: 'string', format: 'binary' } as const;

const WRITTEN = {
  201: { description: 'The file is written.', schema: object({ path: shape.text, byteLength: shape.integer }) },
};

/** The meaning of a file's path, for the OpenAPI document. */
const PATH_MEANING = "Relative to /workspace, or absolute in the sandbox's own root.";

/** Reads the query parameter `path`. */
const readPath = reader({ type: 'string', minLength: 1, description: PATH_MEANING }, (text) => {
  if (text === '') throw new RangeError('expected a path');
  return text;
});

const PATH = { path: required(readPath, 'PATH_INVALID') };

const LIST_FILTERS = { path: readPath, depth: integerReader(1, 100, { default: 2 }) };

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

const ENCODINGS = ['utf8', 'base64'] as const;
type Encoding = (typeof ENCODINGS)[number];

const READ_FILTERS = { ...PATH, encoding: wordReader(ENCODINGS, { default: 'utf8' }) };

const FILE = object({
  path: shape.text,
  content: shape.text,
  encoding: oneOf(...ENCODINGS),
  byteLength: shape.integer,
});

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
const MAX_BODY_BYTES = 2 * MAX_JSON_BYTES;

/** The routes of the files in a running sandbox. */
export function fileRoutes(service: SandboxService): readonly Route[] {
  const readJson = bodyReader<Settings<typeof BODY>>(BODY, MAX_BODY_BYTES, { BODY_TOO_LARGE: 'FILE_TOO_LARGE' });

  /** Rejects, before its body is read, a request that no body can make valid, such as one for a sandbox that has ended. */
  const requireFiles = ({ accountId, params }: KeyVisit) =>
    findUnfinished(service, accountId, params['id'] ?? '', 'files');

  /** Runs an operation on the files of a running sandbox. @throws the errors of `openRunning` */
  const withFiles = async <T>(
    { accountId, params }: KeyVisit,
    { headers }: IncomingMessage,
    type: OperationType,
    work: (running: RunningSandbox) => Promise<T>,
  ): Promise<T> => {
    const running = await openRunning(service, accountId, params['id'] ?? '', 'files');
    return operate(service, running, { type, headers }, () => work(running));
  };

  return [
    byKey('POST', '/v1/sandboxes/{id}/files', 'Writes a file, with the folders on the way.', {
      body: BODY,
      answers: WRITTEN,
      errors: FILE_ERRORS,
      handle: async (visit, request, response) => {
        await requireFiles(visit);
        const { path, content, encoding } = await readJson(request, visit);
        const bytes = decode(content, encoding);
        if (bytes.length > MAX_JSON_BYTES)
          throw fail('FILE_TOO_LARGE', { param: 'content', message: TOO_LARGE_TO_WRITE });
        await withFiles(visit, request, 'FILE_WRITE', ({ driver, reference }) =>
          driver.files.write(reference, path, bytes),
        );
        sendJson(response, 201, { path, byteLength: bytes.length });
      },
    }),
    byKey('GET', '/v1/sandboxes/{id}/files', 'Reads a file as text, or as base64.', {
      query: READ_FILTERS,
      answers: { 200: { description: 'The file.', schema: FILE } },
      errors: FILE_ERRORS,
      handle: async (visit, request, response) => {
        const { path, encoding = 'utf8' } = readQuery(visit.query, READ_FILTERS);
        const bytes = await withFiles(visit, request, 'FILE_READ', (running) =>
          readWhole(running, path, encoding, answerRoomOf(response)),
        );
        sendJson(response, 200, { path, content: bytes.toString(encoding), encoding, byteLength: bytes.length });
      },
    }),
    byKey('DELETE', '/v1/sandboxes/{id}/files', 'Removes a file, or a folder with all that is in it.', {
      query: PATH,
      answers: { 204: { description: 'It is removed.' } },
      errors: FILE_ERRORS,
      handle: async (visit, request, response) => {
        const { path } = readQuery(visit.query, PATH);
        await withFiles(visit, request, 'FILE_DELETE', ({ driver, reference }) => driver.files.remove(reference, path));
        response.writeHead(204).end();
      },
    }),
    byKey('GET', '/v1/sandboxes/{id}/files/list', 'The entries of a folder, and of its subfolders.', {
      query: LIST_FILTERS,
      answers: { 200: { description: 'The entries.', schema: LIST } },
      errors: FILE_ERRORS,
      handle: async (visit, request, response) => {
        const { path = '.', depth = 2 } = readQuery(visit.query, LIST_FILTERS);
        const items = await withFiles(visit, request, 'FILE_LIST', ({ driver, reference }) =>
          driver.files.list(reference, path, depth),
        );
        sendJson(response, 200, { path, items, truncated: items.length === LIST_LIMIT });
      },
    }),
    byKey('PUT', '/v1/sandboxes/{id}/files/content', 'Writes a file with the bytes of the body.', {
      query: PATH,
      body: BYTES,
      bodyType: 'application/octet-stream',
      answers: WRITTEN,
      errors: FILE_ERRORS,
      handle: async (visit, request, response) => {
        const { path } = readQuery(visit.query, PATH);
        await requireFiles(visit);
        const bytes = await readUpload(request, visit);
        await withFiles(visit, request, 'FILE_WRITE', ({ driver, reference }) =>
          driver.files.write(reference, path, bytes),
        );
        sendJson(response, 201, { path, byteLength: bytes.length });
      },
    }),
    byKey('GET', '/v1/sandboxes/{id}/files/content', "A file's bytes, of any size.", {
      query: PATH,
      answers: { 200: { description: 'Its bytes.', schema: BYTES, mediaType: 'application/octet-stream' } },
      errors: FILE_ERRORS,
      handle: async (visit, request, response) => {
        const { path } = readQuery(visit.query, PATH);
        const file = await withFiles(visit, request, 'FILE_READ', ({ driver, reference }) =>
          driver.files.read(reference, path),
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
    }),
  ];
}

/**
 * Yields exactly the announced number of bytes, even if a command writes to the file meanwhile. The client would read excess bytes as the
 * next answer. If the file has become shorter, the answer is aborted.
 */
async function* exactly({ byteLength, content }: FileContent): AsyncGenerator<Buffer> {
  let left = byteLength;
  for await (const piece of content as AsyncIterable<Buffer>) {
    yield piece.subarray(0, left);
    left -= Math.min(left, piece.length);
    if (left === 0) return;
  }
  if (left > 0)
    throw fail('SUPPLIER_ERROR', {
      message: 'The file became shorter while it was read. Read it again.',
    });
}

async function readWhole(
  { driver, reference }: RunningSandbox,
  path: string,
  encoding: Encoding,
  room: AnswerRoom | undefined,
): Promise<Buffer> {
  const file = await driver.files.read(reference, path);
  const { byteLength } = file;
  if (byteLength > MAX_JSON_BYTES) {
    file.content.destroy();
    throw fail('FILE_TOO_LARGE', { message: TOO_LARGE_TO_READ, details: { byteLength } });
  }
  if ((await room?.arrive(COPIES * byteLength)) === false) {
    file.content.destroy();
    throw fail('OVERLOADED', { retryAfterSeconds: 1 });
  }
  const bytes = await buffer(exactly(file));
  if (encoding === 'utf8' && !isUtf8(bytes)) throw invalidParam('encoding', NOT_TEXT);
  return bytes;
}

/** How many times its size a file takes in memory: it exists as bytes, as text and as JSON until the JSON is sent. */
const COPIES = 4;
const TOO_LARGE_TO_READ = `The file has more than ${MAX_JSON_BYTES} bytes. Read it with GET …/files/content.`;
const NOT_TEXT = 'the file is not UTF-8 text; request it with base64';

const TOO_LARGE_TO_WRITE = `The file has more than ${MAX_JSON_BYTES} bytes. Write it with PUT …/files/content.`;

function decode(content: string, encoding: 'utf8' | 'base64'): Buffer {
  if (encoding === 'base64' && !isBase64(content)) throw invalidParam('content', 'expected base64');
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

/** Reads the uploaded bytes. @throws FILE_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, BODY_TIMEOUT */
async function readUpload(request: IncomingMessage, owner: BodyOwner): Promise<Buffer> {
  return readBytes(request, owner, MAX_UPLOAD_BYTES).catch((error: unknown) => {
    if (!(error instanceof GatewayError) || error.code !== 'BODY_TOO_LARGE') throw error;
    throw fail('FILE_TOO_LARGE', {
      message: `The file has more than ${MAX_UPLOAD_BYTES} bytes, the limit of one upload. Upload smaller files.`,
    });
  });
}
