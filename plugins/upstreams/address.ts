import { group, map, text } from '../../core/base/setting-schemas';
import type { Settings } from '../../core/base/settings';
import type { ModelCall } from '../../core/catalog/upstream';

/** Header names that a setting may not use: the gateway sets these headers, or they apply to one hop only. */
const NOT_OURS =
  'accept-encoding|connection|content-[a-z-]+|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade';

const HEADER_NAME = {
  type: 'string',
  pattern: `^(?!(?:${NOT_OURS})$)[a-z0-9-]+$`,
  'x-expected': 'the name of a header in lower case that the gateway does not set itself',
} as const;

const PATH = {
  type: 'string',
  pattern: '^/(?!/)[^\\s#]*$',
  'x-expected': 'a path that begins with one /',
} as const;

/** The settings of adapters whose vendors differ only in address and headers. */
export const ADDRESS_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    path: group(
      "Path and query below `url` in place of the protocol's own, by protocol; `{model}` stands for the upstream's name of the model.",
      {
        messages: text('Of calls of Messages.', PATH),
        chat: text('Of calls of Chat.', PATH),
        responses: text('Of calls of Responses.', PATH),
        embeddings: text('Of calls of Embeddings.', PATH),
      },
    ),
    auth: text(
      "The header that shows the credential; `bearer` for `authorization: Bearer …`. Default: the protocol's own.",
      HEADER_NAME,
    ),
    headers: map(
      'Headers of every request. They replace those of the client.',
      { type: 'string', pattern: '^[\\x20-\\x7e]*$', 'x-expected': 'printable ASCII in one line' },
      { propertyNames: HEADER_NAME },
    ),
  },
} as const;

type AddressSettings = Settings<typeof ADDRESS_SCHEMA>;

/** Returns the path and query of a call: the operator's `path` if it is set, else the protocol's. */
export function requestPath(call: ModelCall, { path }: AddressSettings, usual: string): string {
  if (path === undefined && !usual.includes('{')) return usual + (call.operation ?? '') + call.query;
  const [place = '', query] = (path?.[call.protocol] ?? usual).split(/\?(.*)/s);
  const at = place.replaceAll('{model}', encodeURIComponent(call.model)) + (call.operation ?? '');
  if (query === undefined) return at + call.query;
  return `${at}?${query}${call.query.replace('?', '&')}`;
}

/** Returns the header that carries the credential. */
export function credentialHeader(credential: string, { auth }: AddressSettings, usual: string): Record<string, string> {
  const name = auth ?? usual;
  return name === 'bearer' ? { authorization: `Bearer ${credential}` } : { [name]: credential };
}
