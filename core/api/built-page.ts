import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip, constants as zlib } from 'node:zlib';
import { fail } from '../base/errors';
import { contentTag } from '../http/etag';
import { shape } from '../http/shape';
import type { Handler, Route } from './route';

/** The folder of the built pages: `dist` of the project, or the built program's own folder. `npm run build` writes them there. */
const BUILT = join(__dirname, '../..', __filename.endsWith('.ts') ? 'dist' : '.');

const TEXT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.txt': 'text/plain; charset=utf-8',
};

const OTHER_TYPES: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
};

interface PageFile {
  readonly type: string;
  readonly etag: string;
  readonly bytes: Buffer;
  /** The file compressed with Brotli. Only text files are compressed. */
  readonly br?: Buffer;
  readonly gzip?: Buffer;
}

type PageFiles = ReadonlyMap<string, PageFile>;

/** Returns the routes of a built page, from `folder`. All of its paths return the same files, because the page itself reads the path. */
export function pageRoutes(
  page: 'console' | 'operator',
  listener: Route['listener'],
  summary: string,
  folder?: string,
): readonly Route[] {
  const handle = servePage(page, folder);
  return [`/${page}`, `/${page}/{path...}`].map((path) => ({
    listener,
    auth: 'page',
    method: 'GET',
    path,
    summary,
    answers: {
      200: { description: 'The page, or a file of its build.', schema: shape.text, mediaType: 'text/html' },
      304: { description: 'The file that `If-None-Match` names.' },
      503: { description: 'The page was not built.', schema: shape.text, mediaType: 'text/plain' },
    },
    handle,
  }));
}

/** Serves a built page. The first request reads and compresses the page's few files; later requests use the cached result. */
function servePage(page: 'console' | 'operator', folder = join(BUILT, page)): Handler {
  let reading: Promise<PageFiles> | undefined;

  return async ({ params }, request, response) => {
    const path = params['path'] ?? '';
    if (path === 'api' || path.startsWith('api/'))
      throw fail('NOT_FOUND', { message: 'No page exists at this address.' });
    reading ??= readPage(folder);
    const files = await reading;
    const index = files.get('index.html');
    if (index === undefined) {
      // Reads the folder again at the next request, because the page may be built by then.
      reading = undefined;
      return sayNotBuilt(response);
    }
    const file = files.get(path);
    if (file !== undefined && path !== 'index.html') {
      const lasts = path.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache';
      return sendFile(request, response, file, lasts);
    }
    if (path.startsWith('assets/')) throw fail('NOT_FOUND', { message: 'The file does not exist.' });
    return sendFile(request, response, index, 'no-store');
  };
}

function sayNotBuilt(response: ServerResponse): void {
  response.writeHead(503, { 'content-type': 'text/plain; charset=utf-8' });
  response.end('This page was not built. Run `npm run build` where Tollgate is installed.\n');
}

function sendFile(request: IncomingMessage, response: ServerResponse, file: PageFile, cacheControl: string): void {
  const headers = { 'cache-control': cacheControl, etag: file.etag, vary: 'accept-encoding' };
  if (request.headers['if-none-match'] === file.etag && cacheControl !== 'no-store') {
    response.writeHead(304, headers);
    response.end();
    return;
  }
  const encoding = encodingFor(request, file);
  const bytes = encoding === undefined ? file.bytes : (file[encoding] ?? file.bytes);
  response.writeHead(200, {
    ...headers,
    'content-type': file.type,
    'content-length': bytes.length,
    ...(encoding !== undefined && { 'content-encoding': encoding }),
  });
  response.end(bytes);
}

function encodingFor({ headers }: IncomingMessage, file: PageFile): 'br' | 'gzip' | undefined {
  const taken = String(headers['accept-encoding'] ?? '')
    .split(',')
    .filter((each) => !/;\s*q=0(\.0*)?\s*$/.test(each))
    .map((each) => each.split(';')[0]?.trim());
  return (['br', 'gzip'] as const).find((each) => file[each] !== undefined && taken.includes(each));
}

async function readPage(folder: string): Promise<PageFiles> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(
    await Promise.all(
      files.map(
        async (file) =>
          [
            file
              .slice(folder.length + 1)
              .split(sep)
              .join('/'),
            await readPageFile(file),
          ] as const,
      ),
    ),
  );
}

async function readPageFile(path: string): Promise<PageFile> {
  const bytes = await readFile(path);
  const etag = contentTag(bytes);
  const text = TEXT_TYPES[extname(path)];
  if (text === undefined) return { type: OTHER_TYPES[extname(path)] ?? 'application/octet-stream', etag, bytes };
  const quality = { [zlib.BROTLI_PARAM_QUALITY]: 9, [zlib.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const [br, zipped] = await Promise.all([
    promisify(brotliCompress)(bytes, { params: quality }),
    promisify(gzip)(bytes, { level: 9 }),
  ]);
  return { type: text, etag, bytes, br, gzip: zipped };
}
