import type { IncomingMessage } from 'node:http';
import { BUFFERED } from '../../core/buffered-bytes';
import type { ModelRequest } from '../../core/call';
import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { JsonScanner } from '../../core/json-scanner';
import { type CallWith, definePolicy } from '../../core/policy';
import { announcedBytes, type BodyLimits, checkBodyHeaders, readBody, saysJson } from '../../core/read-body';
import { DURATION, parseDuration } from '../../core/settings';
import { checkFields } from './check-fields';
import { CallObserver } from './observe-call';
import { requireMoney } from './require-money';
import { type AcceptedRoles, acceptedRoles, MESSAGES_ROLES } from './roles';
import { selectHeaders } from './select-headers';

/** What the model sees of an image is not its bytes; contract section 6. */
const IMAGE_TOKENS = 1_600;
const BYTES_PER_TOKEN = 3;

/** Contract section 3; the times are settings. */
export const REQUEST_BODY_LIMITS: Omit<BodyLimits, 'totalMs' | 'slowMs'> = {
  maxBytes: 20_971_520,
  minBytesPerSecond: 1_024,
};

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
      roles: {
        description: 'Roles accepted in the `messages` of a Messages call.',
        type: 'array',
        items: { type: 'string', enum: MESSAGES_ROLES },
        minItems: 1,
        uniqueItems: true,
        default: MESSAGES_ROLES,
      },
      bodyTimeout: { ...DURATION, description: 'A body has to be here by then.', default: '120s' },
      slowBodyTimeout: { ...DURATION, description: 'How long a body may be slower than 1 KB/s.', default: '30s' },
    },
  },
  needs: ['key'],
  provides: ['request'],
  boundsItself: true,
  prepare: ({ forwardHeaderPrefixes, roles, bodyTimeout, slowBodyTimeout }, gateway) => {
    const accepted = acceptedRoles(roles);
    const limits = {
      ...REQUEST_BODY_LIMITS,
      totalMs: parseDuration(bodyTimeout),
      slowMs: parseDuration(slowBodyTimeout),
    };
    return async (call, request) => ({
      request: await readRequest(gateway, call, request, forwardHeaderPrefixes, accepted[call.protocol], limits),
    });
  },
});

async function readRequest(
  gateway: Gateway,
  call: CallWith<'key'>,
  request: IncomingMessage,
  prefixes: readonly string[],
  roles: AcceptedRoles,
  limits: BodyLimits,
): Promise<ModelRequest> {
  if (!saysJson(request)) throw fail('UNSUPPORTED_MEDIA_TYPE');
  checkBodyHeaders(request, limits.maxBytes);
  const { protocol } = call;
  const observer = new CallObserver(protocol, roles);
  const owner = { accountId: call.key.accountId, onEnd: (work: () => void) => call.onEnd(work) };
  const room = BUFFERED.open(owner, announcedBytes(request));
  const beforeLarge = () => requireMoney(gateway, call.key);
  const chunks = await readBody(request, { limits, room, look: new JsonScanner(observer), beforeLarge, call });
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

function queryOf({ url = '' }: IncomingMessage): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start);
}
