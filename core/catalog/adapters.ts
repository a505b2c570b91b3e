import { guardAdapter } from './guarded-adapter';
import type { AnyAdapter, Framing, TranslatingAdapter, UpstreamAdapter } from './upstream';
import { fromTokenCounts } from './usage';

interface Registered {
  readonly given: AnyAdapter;
  readonly guarded: UpstreamAdapter;
}

/** Contracts that this version understands. */
const CONTRACTS: readonly unknown[] = ['upstream/1', 'upstream/2'];

const adapters = new Map<string, Registered>();

/** Each function that the gateway calls, of a native adapter and of one with a dialect of its own. */
const NATIVE = ['request', 'authorize', 'judge', 'readEvent', 'readBody'];
const TRANSLATING = ['request', 'authorize', 'judge', 'answer'];

/** Returns what removes it again. @throws when it is not of this contract, or another adapter has the name already. */
export function registerAdapter(adapter: AnyAdapter): () => void {
  refuseOtherContracts(adapter);
  const known = adapters.get(adapter.name);
  if (known !== undefined && known.given !== adapter) throw new Error(`two adapters are named "${adapter.name}"`);
  adapters.set(adapter.name, { given: adapter, guarded: guardAdapter(toCurrent(adapter)) });
  return () => void adapters.delete(adapter.name);
}

/** Packages are written outside, and without a compiler perhaps. */
function refuseOtherContracts(adapter: AnyAdapter): void {
  const { name, contract } = adapter;
  if (!CONTRACTS.includes(contract))
    throw new Error(
      `the adapter "${name}" is written for the contract ${contract}; this version of Tollgate has ${CONTRACTS.join(' and ')}`,
    );
  const given: Readonly<Record<string, unknown>> = { ...adapter };
  const missing = (isTranslating(adapter) ? TRANSLATING : NATIVE).filter((each) => typeof given[each] !== 'function');
  if (missing.length > 0) throw new Error(`the adapter "${name}" lacks ${missing.join(', ')}`);
  const { sign, framing } = given;
  if (sign !== undefined && typeof sign !== 'function')
    throw new Error(`the adapter "${name}" has a \`sign\` that is no function`);
  if (framing !== undefined && typeof (framing as Partial<Framing>).open !== 'function')
    throw new Error(`the adapter "${name}" has a \`framing\` without the function \`open\``);
  if (!isTranslating(adapter) && !(Array.isArray(adapter.protocols) && adapter.protocols.length > 0))
    throw new Error(`the adapter "${name}" names no protocols, and no dialect of its own`);
}

function isTranslating(adapter: AnyAdapter): adapter is TranslatingAdapter {
  return 'dialect' in adapter;
}

/** Returns an adapter of an earlier contract, or of a dialect of its own, in the form that the gateway uses. */
export function toCurrent(adapter: AnyAdapter): UpstreamAdapter {
  if (isTranslating(adapter)) return withOwnDialect(adapter);
  if (adapter.contract === 'upstream/2') return adapter;
  return {
    ...adapter,
    contract: 'upstream/2',
    readEvent: (event) => {
      const { usage, ...note } = adapter.readEvent(event);
      return usage === undefined ? note : { ...note, usage: fromTokenCounts(usage) };
    },
    readBody: (body) => {
      const { usage, ...rest } = adapter.readBody(body);
      return { ...rest, usage: fromTokenCounts(usage) };
    },
  };
}

/** It speaks none of the clients' protocols: nobody calls what is for them. */
function withOwnDialect(adapter: TranslatingAdapter): UpstreamAdapter {
  const { contract, name, schema, authorize, judge, sign, framing } = adapter;
  const never = (): never => {
    throw new Error(`the adapter "${name}" speaks only the dialect ${adapter.dialect}`);
  };
  const native = { protocols: [], request: never, readEvent: never, readBody: never };
  return {
    contract,
    name,
    schema,
    ...(sign !== undefined && { sign: sign.bind(adapter) }),
    ...(framing !== undefined && { framing }),
    authorize: authorize.bind(adapter),
    judge: judge.bind(adapter),
    ...native,
    own: adapter,
  };
}

/** The adapter as the gateway uses it: what it throws is an AdapterFault. */
export function findAdapter(name: string): UpstreamAdapter | undefined {
  return adapters.get(name)?.guarded;
}

export function adapterNames(): string[] {
  return [...adapters.keys()].sort();
}
