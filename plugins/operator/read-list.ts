import { type ErrorOptions, fail, GatewayError, invalidParam } from '../../core/base/errors';
import { type ListFormat, type PublicList, readPublicList } from '../../core/configuration/proposals/list';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { JsonError } from '../../core/http/json-scanner';
import { BodyTooLong, readAll } from '../../core/wire/chunk-reader';
import { AddressRefused, classifyDialFailure } from '../../core/wire/egress';
import { decodedChunks, Exchange } from '../../core/wire/exchange';

/** The most bytes of a public list of prices. */
export const MAX_LIST_BYTES = 20 * 1024 * 1024;

const PATIENCE_MS = 60_000;
const TIMEOUTS = { connectMs: 30_000, headersMs: 60_000, idleMs: 30_000 };

/** Where a public list of prices comes from: its text, or its address. */
export type Origin = { readonly text: string } | { readonly url: string };

/**
 * Reads a public list of prices in the given format, or in the one that its content shows.
 * @throws INVALID_FIELD for another content or address, BODY_TOO_LARGE, REPORT_UNAVAILABLE if the address does not answer with it
 */
export async function readList(
  { egress }: Pick<PluginGateway, 'egress'>,
  origin: Origin,
  format: ListFormat | undefined,
): Promise<PublicList> {
  const param = 'text' in origin ? 'text' : 'url';
  const bytes = 'text' in origin ? Buffer.from(origin.text) : await fetchList(egress, readUrl(origin.url));
  if (bytes.length > MAX_LIST_BYTES) throw fail('BODY_TOO_LARGE');
  const expected = `expected ${format === undefined ? 'a list of models.dev or LiteLLM' : `a list of ${format}`} as JSON`;
  try {
    const list = await readPublicList(bytes, format);
    if (list !== undefined) return list;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw invalidParam(param, `${expected}, but ${error.message}`);
  }
  throw invalidParam(param, expected);
}

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The address is stored and shown, so it must not have a password.
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '') return url;
  throw invalidParam('url', 'expected an address with http or https, without a password');
}

/** Fetches a list from a public address. Redirects are not followed. */
async function fetchList(egress: PluginGateway['egress'], url: URL): Promise<Buffer> {
  const destination = { name: `price list ${url.origin}`, url, allowPrivate: false, timeouts: TIMEOUTS };
  const path = `${url.pathname}${url.search}`;
  const exchange = new Exchange(egress.pool(destination), {
    method: 'GET',
    path,
    headers: { accept: 'application/json' },
  });
  const patience = setTimeout(() => exchange.cancel(), PATIENCE_MS);
  try {
    const head = await exchange.head;
    if (head.status !== 200) throw unavailable(`it answered ${head.status}`);
    return await readAll(decodedChunks(exchange, head), MAX_LIST_BYTES);
  } catch (error) {
    if (error instanceof BodyTooLong) throw fail('BODY_TOO_LARGE', { cause: error });
    if (error instanceof AddressRefused) throw invalidParam('url', `expected a public address: ${error.message}`);
    if (error instanceof GatewayError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw unavailable(`${classifyDialFailure(error)}: ${reason}`, { cause: error });
  } finally {
    clearTimeout(patience);
    exchange.cancel();
    egress.retire(destination.name);
  }
}

function unavailable(why: string, options: ErrorOptions = {}) {
  return fail('REPORT_UNAVAILABLE', { ...options, message: `The list of prices could not be read: ${why}.` });
}
