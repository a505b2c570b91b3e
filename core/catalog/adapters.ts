import { guardAdapter } from './guarded-adapter';
import type { UpstreamAdapter, UpstreamAdapter1 } from './upstream';
import { fromTokenCounts } from './usage';

interface Registered {
  readonly given: UpstreamAdapter | UpstreamAdapter1;
  readonly guarded: UpstreamAdapter;
}

/** Contracts that this version understands. */
const CONTRACTS: readonly unknown[] = ['upstream/1', 'upstream/2'];

const adapters = new Map<string, Registered>();

/** Each function that the gateway calls. */
const FUNCTIONS = ['request', 'authorize', 'judge', 'readEvent', 'readBody'] as const;

/** Returns what removes it again. @throws when it is not of this contract, or another adapter has the name already. */
export function registerAdapter(adapter: UpstreamAdapter | UpstreamAdapter1): () => void {
  refuseOtherContracts(adapter);
  const known = adapters.get(adapter.name);
  if (known !== undefined && known.given !== adapter) throw new Error(`two adapters are named "${adapter.name}"`);
  adapters.set(adapter.name, { given: adapter, guarded: guardAdapter(toCurrent(adapter)) });
  return () => void adapters.delete(adapter.name);
}

/** Packages are written outside, and without a compiler perhaps. */
function refuseOtherContracts(adapter: UpstreamAdapter | UpstreamAdapter1): void {
  const { name, contract, protocols } = adapter;
  if (!CONTRACTS.includes(contract))
    throw new Error(
      `the adapter "${name}" is written for the contract ${contract}; this version of Tollgate has ${CONTRACTS.join(' and ')}`,
    );
  const missing = FUNCTIONS.filter((each) => typeof adapter[each] !== 'function');
  if (missing.length > 0) throw new Error(`the adapter "${name}" lacks ${missing.join(', ')}`);
  if (adapter.sign !== undefined && typeof adapter.sign !== 'function')
    throw new Error(`the adapter "${name}" has a \`sign\` that is no function`);
  if (adapter.framing !== undefined && typeof adapter.framing.open !== 'function')
    throw new Error(`the adapter "${name}" has a \`framing\` without the function \`open\``);
  if (!Array.isArray(protocols) || protocols.length === 0) throw new Error(`the adapter "${name}" names no protocols`);
}

/** Returns an adapter of an earlier contract as one of the current contract. */
export function toCurrent(adapter: UpstreamAdapter | UpstreamAdapter1): UpstreamAdapter {
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

/** The adapter as the gateway uses it: what it throws is an AdapterFault. */
export function findAdapter(name: string): UpstreamAdapter | undefined {
  return adapters.get(name)?.guarded;
}

export function adapterNames(): string[] {
  return [...adapters.keys()].sort();
}
