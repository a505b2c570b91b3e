import { fail, type GatewayError } from '../../core/base/errors';
import { CACHE_NAMES } from '../../core/protocols/cache-names';
import type { SharedObject } from '../../core/protocols/request-table';
import { REQUEST_TABLES } from '../../core/protocols/request-tables';

/** Returns the error for an object that the vendor keeps for the platform's account. Without this error, every customer could name the object. */
export function notShared(names: SharedObject, param: string): GatewayError {
  return notSupported(
    param,
    `"${names}" names an object at the vendor that belongs to no account, and this gateway does not share such objects (\`sharedObjects\`).`,
  );
}

/** Returns the error for a tier, speed or region whose value no price can match. */
export function notPriced(name: string): GatewayError {
  return fail('MODEL_NOT_PRICED', {
    param: name,
    message: `The configuration has no price for what "${name}" requests.`,
  });
}

export function notSupported(param: string, message: string): GatewayError {
  return fail('NOT_SUPPORTED', { param, message, status: 400 });
}

/** Members in the request tables (the known members of each protocol) that influence the cost or what a vendor keeps, or have checked values. */
const DECIDING = Object.values(REQUEST_TABLES).flatMap(({ members }) =>
  Object.entries(members).flatMap(([name, { class: of, is, leaves }]) =>
    of === 'free' && is === undefined && leaves === undefined ? [] : [name],
  ),
);

/**
 * Members that may occur only once in a body, because JSON parsers differ in which of two values they use. These members decide about
 * routing, money, the prompt cache that is read, or the changes that adapters make to the body.
 */
export const ONCE: ReadonlySet<string> = new Set([
  ...DECIDING,
  ...CACHE_NAMES,
  'model',
  'priority',
  'tool_choice',
  'metadata',
]);

/** The members of `ONCE` by their letters. Some upstreams read `Max_Tokens` or `maxTokens` as a limit that the gateway has not seen. */
const FOLDED: ReadonlyMap<string, string> = new Map([...ONCE].map((name) => [lettersOf(name), name]));

function lettersOf(key: string): string {
  return key.toUpperCase().replaceAll(/[^\p{L}\p{N}]/gu, '');
}

/** Members of the request tables whose names do not resemble a member of `ONCE`. The gateway need not compare these names by their letters. */
const OTHERS: ReadonlySet<string> = new Set(
  Object.values(REQUEST_TABLES)
    .flatMap(({ members }) => Object.keys(members))
    .filter((name) => !FOLDED.has(lettersOf(name))),
);

/** Returns the member of `ONCE` that a key resembles without being equal to it; undefined if there is none. */
export function lookalikeOf(key: string): string | undefined {
  return ONCE.has(key) || OTHERS.has(key) ? undefined : FOLDED.get(lettersOf(key));
}
