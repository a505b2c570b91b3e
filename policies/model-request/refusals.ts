import { fail, type GatewayError } from '../../core/base/errors';
import { CACHE_NAMES } from '../../core/protocols/cache-names';
import type { SharedObject } from '../../core/protocols/request-table';
import { REQUEST_TABLES } from '../../core/protocols/request-tables';

/** Returns the error for an object that the vendor keeps for the platform's account. Without it, every customer could name the object. */
export function notShared(names: SharedObject, param: string): GatewayError {
  return notSupported(
    param,
    `"${names}" names an object at the vendor that belongs to no account, and this gateway does not share such objects (\`sharedObjects\`).`,
  );
}

/** Returns the error for a tier, speed or region in a form that no price can have. */
export function notPriced(name: string): GatewayError {
  return fail('MODEL_NOT_PRICED', {
    param: name,
    message: `The configuration has no price for what "${name}" requests.`,
  });
}

export function notSupported(param: string, message: string): GatewayError {
  return fail('NOT_SUPPORTED', { param, message, status: 400 });
}

/** The members in the tables that influence the cost, or whose values are checked. */
const DECIDING = Object.values(REQUEST_TABLES).flatMap(({ members }) =>
  Object.entries(members).flatMap(([name, row]) => (row.class === 'free' && row.is === undefined ? [] : [name])),
);

/** Members that may stand only once. They decide about routing, money, whose cache is read or the edits of adapters, and readers differ in which of two they use. */
export const ONCE: ReadonlySet<string> = new Set([
  ...DECIDING,
  ...CACHE_NAMES,
  'model',
  'priority',
  'tool_choice',
  'metadata',
]);

/** The same members by their letters. Some upstreams would take `Max_Tokens` or `maxTokens` for the limit, which the gateway had not seen. */
const FOLDED: ReadonlyMap<string, string> = new Map([...ONCE].map((name) => [lettersOf(name), name]));

function lettersOf(key: string): string {
  return key.toUpperCase().replaceAll(/[^\p{L}\p{N}]/gu, '');
}

/** Members of the tables that resemble none of them, so that most keys need not be compared by their letters. */
const OTHERS: ReadonlySet<string> = new Set(
  Object.values(REQUEST_TABLES)
    .flatMap(({ members }) => Object.keys(members))
    .filter((name) => !FOLDED.has(lettersOf(name))),
);

/** Returns the member that a key resembles without being equal to it. */
export function lookalikeOf(key: string): string | undefined {
  return ONCE.has(key) || OTHERS.has(key) ? undefined : FOLDED.get(lettersOf(key));
}
