import type { IncomingMessage } from 'node:http';
import type { ModelRequest } from '../../core/call';
import { type CallWith, definePolicy } from '../../core/policy';
import { DURATION, parseDuration } from '../../core/settings';
import { BufferedBytes } from './buffered-bytes';
import { checkFields } from './check-fields';
import { CallObserver } from './observe-call';
import { type BodyLimits, checkBodyHeaders, REQUEST_BODY_LIMITS, readBody } from './read-body';
import { selectHeaders } from './select-headers';

/** What the model sees of an image is not its bytes; contract section 6. */
const IMAGE_TOKENS = 1_600;
const BYTES_PER_TOKEN = 3;

/** One for the process, whatever is configured how often. */
const BUFFERED = new BufferedBytes();

export default definePolicy({
  name: 'model-request',
  summary: 'What is asked?',
  schema: {
    type: 'object',
    properties: {
      forwardHeaderPrefixes: {
        description: 'Headers whose names begin so are forwarded, both ways.',
        type: 'array',
        items: { type: 'string', pattern: '^[a-z0-9][a-z0-9-]*-$' },
        default: ['anthropic-', 'protoa-'],
      },
      bodyTimeout: { ...DURATION, description: 'A body has to be here by then.', default: '120s' },
      slowBodyTimeout: { ...DURATION, description: 'How long a body may be slower than 1 KB/s.', default: '30s' },
    },
  },
  needs: ['key'],
  provides: ['request'],
  prepare: ({ forwardHeaderPrefixes, bodyTimeout, slowBodyTimeout }) => {
    const limits = {
      ...REQUEST_BODY_LIMITS,
      totalMs: parseDuration(bodyTimeout),
      slowMs: parseDuration(slowBodyTimeout),
    };
    return async (call, request) => ({ request: await readRequest(call, request, forwardHeaderPrefixes, limits) });
  },
});

async function readRequest(
  call: CallWith<'key'>,
  request: IncomingMessage,
  prefixes: readonly string[],
  limits: BodyLimits,
): Promise<ModelRequest> {
  checkBodyHeaders(request);
  const { protocol } = call;
  const observer = new CallObserver(protocol);
  const chunks = await readBody(request, observer, limits, BUFFERED.of(call, announcedBytes(request)), call);
  const fields = checkFields(protocol, observer, chunks);
  const byteLength = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const textBytes = byteLength - observer.imageBytes;
  return {
    protocol,
    query: queryOf(request),
    headers: selectHeaders(request.headers, prefixes),
    forwardHeaderPrefixes: prefixes,
    inputTokensEstimate: Math.ceil(textBytes / BYTES_PER_TOKEN) + observer.images * IMAGE_TOKENS,
    body: { chunks, byteLength, members: observer.members.places },
    ...fields,
  };
}

/** 0 for a body that comes in chunks. */
function announcedBytes({ headers }: IncomingMessage): number {
  return Number(headers['content-length'] ?? 0);
}

function queryOf({ url = '' }: IncomingMessage): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start);
}
