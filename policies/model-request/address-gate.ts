import type { Upstream } from '../../core/catalog/catalog';
import type { OpenedHost } from '../../core/catalog/upstream';
import { BACKSLASH, COLON, SPACE } from '../../core/http/json-bytes';
import { type JsonToken, MAX_TOKEN_TEXT_BYTES } from '../../core/http/json-scanner';

/** The kinds of places at which a request brings content: by an address, as a file, or as sound. The last two may also be bare base64. */
export type ContentPlace = 'address' | 'file' | 'sound';

/** Decides which addresses of content a request may have. A vendor reads them with rights that the customer does not have. */
export interface AddressGate {
  /** Returns what is expected instead of this string; undefined if a vendor may read it. */
  problemOf(token: JsonToken, place: ContentPlace): string | undefined;
}

/** What is expected instead of an address that is not of the web. */
export const FOREIGN_PROBLEM = 'expected an http or https address, or data: with the type of an image or document';
const EXPECTED_IN: Readonly<Record<ContentPlace, string>> = {
  address: FOREIGN_PROBLEM,
  file: `${FOREIGN_PROBLEM}, or base64`,
  sound: 'expected base64, an http or https address, or data: with the type of a sound',
};
const OPENED =
  "a vendor reads this host with the platform's credential; expected an address that is open to everybody, or the content itself as data:";

/** The types that `data:` may have. Some programs write every `/` as `\/`. */
const DATA: Readonly<Record<ContentPlace, RegExp>> = {
  address: /^"data:(?:image|application|text)\\?\/[\w.+-]+[;,]/i,
  file: /^"data:(?:image|application|text)\\?\/[\w.+-]+[;,]/i,
  sound: /^"data:(?:audio\\?\/[\w.+-]+)?[;,]/i,
};
const BASE64 = /^"(?:[\w+/=-]|\\[/rn])*"?$/;

/** One reading of the authority: no white space, no `\`, which some readers take for `/`, and one `@` at most. */
const WEB = /^https?:\/\/(?:[^\s/?#\\@]*@)?[^\s/?#\\@]+(?:[/?#]|$)/i;

/** Matches an address of another kind. */
const FOREIGN = /^\s*(?!https?:)[a-z][a-z0-9+.-]*:\/\//i;
const SCHEME_BYTES = 64;

/**
 * Whether a string is an address that is not of the web, such as `gs://bucket/object`, also with the tabs and line breaks that
 * readers of addresses drop.
 */
export function isForeign(token: JsonToken): boolean {
  return mayHaveScheme(token) && FOREIGN.test(textOf(token).replaceAll(/[\t\r\n]/g, ''));
}

/** Most strings are no address, which their first word shows. A scheme may be written with escapes, and may follow white space. */
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

/** Returns the text of a string; of one that is longer than 4 KiB only the beginning, with its escapes. */
function textOf(token: JsonToken): string {
  return token.text() ?? token.head(MAX_TOKEN_TEXT_BYTES).slice(1).replaceAll('\\/', '/');
}

/** Returns the gate for the upstreams of a configuration, because a customer chooses neither of them. */
export function openAddressGate(upstreams: readonly Pick<Upstream, 'url' | 'adapters'>[]): AddressGate {
  const opened = upstreams.flatMap(openedBy);
  return {
    problemOf: (token, place) => {
      const head = token.head(MAX_TOKEN_TEXT_BYTES);
      if (DATA[place].test(head) || (place !== 'address' && BASE64.test(head))) return undefined;
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

/** Returns the host as WHATWG readers see it, without port and trailing dot. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/\.+$/, '');
}
