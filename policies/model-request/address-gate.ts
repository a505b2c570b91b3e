import type { Upstream } from '../../core/catalog/catalog';
import type { OpenedHost } from '../../core/catalog/upstream';
import { BACKSLASH, COLON, SPACE } from '../../core/http/json-bytes';
import { type JsonToken, MAX_TOKEN_TEXT_BYTES } from '../../core/http/json-scanner';

/** The kinds of fields in which a request has content: an address, a file, or sound. `file` and `sound` may also hold bare base64. */
export type ContentPlace = 'address' | 'file' | 'sound';

/** Decides which addresses of content a request may contain. A vendor reads them with permissions that the customer does not have. */
export interface AddressGate {
  /** Returns a description of the expected value if this string is not allowed; undefined if a vendor may read it. */
  problemOf(token: JsonToken, place: ContentPlace): string | undefined;
}

/** What the gateway expects instead of an address that is neither http nor https. */
export const FOREIGN_PROBLEM = 'expected an http or https address, or data: with the type of an image or document';
const EXPECTED_IN: Readonly<Record<ContentPlace, string>> = {
  address: FOREIGN_PROBLEM,
  file: `${FOREIGN_PROBLEM}, or base64`,
  sound: 'expected base64, an http or https address, or data: with the type of a sound',
};
const OPENED =
  "a vendor reads this host with the platform's credential; expected an address that is open to everybody, or the content itself as data:";

/** The media types that a `data:` URL may have, for each kind of field. Some programs write every `/` as `\/`. */
const DATA: Readonly<Record<ContentPlace, RegExp>> = {
  address: /^"data:(?:image|application|text)\\?\/[\w.+-]+[;,]/i,
  file: /^"data:(?:image|application|text)\\?\/[\w.+-]+[;,]/i,
  sound: /^"data:(?:audio\\?\/[\w.+-]+)?[;,]/i,
};
const BASE64 = /^"(?:[\w+/=-]|\\[/rn])*"?$/;

/** Matches a web address whose host all parsers read alike: no white space, no `\`, which some parsers take for `/`, and one `@` at most. */
const WEB = /^https?:\/\/(?:[^\s/?#\\@]*@)?[^\s/?#\\@]+(?:[/?#]|$)/i;

/** Matches an address with another scheme than http and https. */
const FOREIGN = /^\s*(?!https?:)[a-z][a-z0-9+.-]*:\/\//i;
const SCHEME_BYTES = 64;

/**
 * Returns whether a string is an address with another scheme than http and https, such as `gs://bucket/object`. It ignores tabs and line
 * breaks, because parsers of addresses drop them.
 */
export function isForeign(token: JsonToken): boolean {
  return mayHaveScheme(token) && FOREIGN.test(textOf(token).replaceAll(/[\t\r\n]/g, ''));
}

/** Returns whether a string may begin with a scheme. Its first characters rule this out for most strings. Escapes and spaces are allowed. */
function mayHaveScheme(token: JsonToken): boolean {
  let isSpace = true;
  for (let at = 1; at < SCHEME_BYTES; at += 1) {
    const byte = token.byteAt(at);
    if (byte === COLON || byte === BACKSLASH) return true;
    if (byte === undefined) return false;
    isSpace &&= byte === SPACE || byte >= 0x80;
    if (!isSpace && IN_SCHEME[byte] === 0) return false;
  }
  return false;
}

const IN_SCHEME = Uint8Array.from({ length: 256 }, (_, byte) => +/[a-z0-9+.-]/i.test(String.fromCharCode(byte)));

/** Returns the text of a string; for a string longer than 4 KiB only the beginning, with its escapes. */
function textOf(token: JsonToken): string {
  return token.text() ?? token.head(MAX_TOKEN_TEXT_BYTES).slice(1).replaceAll('\\/', '/');
}

/** Returns whether a string in such a field is the content itself, not its address. */
export function isContent(token: JsonToken, place: ContentPlace): boolean {
  const head = token.head(MAX_TOKEN_TEXT_BYTES);
  return DATA[place].test(head) || (place !== 'address' && BASE64.test(head));
}

/** Returns one check of addresses for all upstreams of a configuration, because a customer cannot choose which upstream or adapter serves a call. */
export function openAddressGate(upstreams: readonly Pick<Upstream, 'url' | 'adapters'>[]): AddressGate {
  const opened = upstreams.flatMap(openedBy);
  return {
    problemOf: (token, place) => {
      if (isContent(token, place)) return undefined;
      const text = textOf(token).trim();
      if (!WEB.test(text) || !URL.canParse(text)) return EXPECTED_IN[place];
      const url = new URL(text);
      const host = hostOf(url);
      return opened.some((row) => isBelow(host, row.host) && !isSigned(url, row)) ? OPENED : undefined;
    },
  };
}

function openedBy({ url, adapters }: Pick<Upstream, 'url' | 'adapters'>): readonly OpenedHost[] {
  const rows = adapters.flatMap(({ opens = [] }) => opens.filter(({ at = '' }) => hostOf(url).endsWith(at)));
  return [{ host: hostOf(url) }, ...rows];
}

function isBelow(host: string, one: string): boolean {
  return host === one || host.endsWith(`.${one}`);
}

function isSigned({ searchParams }: URL, { signedBy = [] }: OpenedHost): boolean {
  return signedBy.some((name) => (searchParams.get(name) ?? '') !== '');
}

/** Returns the host as WHATWG parsers read it, without port and trailing dot. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/\.+$/, '');
}
