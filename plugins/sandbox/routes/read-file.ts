import { isUtf8 } from 'node:buffer';
import { buffer } from 'node:stream/consumers';
import { fail } from '../../../core/errors';
import { sendJson } from '../../../core/http';
import type { Route } from '../../../core/plugin';
import { readQuery } from '../../../core/query';
import type { RunningSandbox } from '../access';
import type { InsideService } from '../inside';
import { MOST_AS_JSON, readPath, requiredPath, withFiles } from './file-access';

const FILTERS = { path: readPath, encoding: readEncoding };

export function readFile(service: InsideService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes/{id}/files',
    summary: 'Reads a file as text, or as base64.',
    handle: async ({ key, params, query }, _request, response) => {
      const { path: asked, encoding = 'utf8' } = readQuery(query, FILTERS);
      const path = requiredPath(asked);
      const bytes = await withFiles(
        service,
        { accountId: key.accountId, sandboxId: params['id'] },
        'FILE_READ',
        (running) => readWhole(running, path, encoding),
      );
      sendJson(response, 200, { path, content: bytes.toString(encoding), encoding, byteLength: bytes.length });
    },
  };
}

async function readWhole({ driver, reference }: RunningSandbox, path: string, encoding: Encoding): Promise<Buffer> {
  const { byteLength, content } = await driver.files.read(reference, path);
  if (byteLength > MOST_AS_JSON) {
    content.destroy();
    throw fail('FILE_TOO_LARGE', { message: TOO_LARGE, details: { byteLength } });
  }
  const bytes = await buffer(content);
  if (encoding === 'utf8' && !isUtf8(bytes)) throw fail('INVALID_FIELD', { param: 'encoding', message: NOT_TEXT });
  return bytes;
}

const TOO_LARGE = `A file of more than ${MOST_AS_JSON} bytes is read raw, with GET …/files/content.`;
const NOT_TEXT = 'encoding: the file is no UTF-8 text; ask for it with base64';

type Encoding = 'utf8' | 'base64';

function readEncoding(text: string): Encoding {
  if (text !== 'utf8' && text !== 'base64') throw new RangeError('expected utf8 or base64');
  return text;
}
