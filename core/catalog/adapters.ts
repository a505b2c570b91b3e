import { type ExtensionContract, registeringPackage, requireContract } from '../base/extension-contract';
import { guardAdapter } from './guarded-adapter';
import type { AnyAdapter, TranslatingAdapter, UpstreamAdapter } from './upstream';

interface Registered {
  readonly given: AnyAdapter;
  readonly guarded: UpstreamAdapter;
  readonly packageName: string;
}

const NATIVE: ExtensionContract = {
  kind: 'adapter',
  version: 'upstream/1',
  functions: ['request', 'authorize', 'judge'],
  optional: ['sign'],
};

/** The contract of an adapter that translates between the gateway and a dialect (an upstream's own protocol). */
const TRANSLATING: ExtensionContract = {
  ...NATIVE,
  functions: ['request', 'authorize', 'judge', 'answer'],
  optional: ['sign', 'readError'],
};

const adapters = new Map<string, Registered>();

/** Registers an adapter and returns the function that removes it. @throws when the adapter breaks its contract, or its name is taken */
export function registerAdapter(adapter: AnyAdapter): () => void {
  const isOfOwnDialect = isTranslating(adapter);
  if (!isOfOwnDialect && typeof (adapter as { readonly answer?: unknown } | undefined)?.answer === 'function')
    throw new Error(
      `the adapter "${adapter.name}" has \`answer\` and no \`dialect\`: name the dialect that it translates`,
    );
  requireContract(adapter, isOfOwnDialect ? TRANSLATING : NATIVE);
  const { name, framing } = adapter;
  if (framing !== undefined && typeof framing.open !== 'function')
    throw new Error(
      `the adapter "${name}" has a \`framing\` without the function \`open\`: add \`open\`, which the contract of adapters requires`,
    );
  if (!isOfOwnDialect && !(Array.isArray(adapter.protocols) && adapter.protocols.length > 0))
    throw new Error(
      `the adapter "${name}" declares no protocols: add \`protocols\` for clients to use, or its own \`dialect\``,
    );
  const known = adapters.get(name);
  if (known !== undefined && known.given !== adapter)
    throw new Error(`another adapter is already named "${name}", in ${known.packageName}: rename this one`);
  const guarded = guardAdapter(withOwnDialect(adapter));
  adapters.set(name, { given: adapter, guarded, packageName: registeringPackage() });
  return () => void adapters.delete(name);
}

function isTranslating(adapter: AnyAdapter): adapter is TranslatingAdapter {
  return typeof adapter === 'object' && adapter !== null && 'dialect' in adapter;
}

/** Returns an adapter in the form that the gateway uses. For an adapter with its own dialect, `request` throws, because clients do not speak that dialect. */
export function withOwnDialect(adapter: AnyAdapter): UpstreamAdapter {
  if (!isTranslating(adapter)) return adapter;
  const { contract, name, schema, authorize, judge, sign, framing, opens } = adapter;
  const never = (): never => {
    throw new Error(
      `the adapter "${name}" has only its own dialect ${adapter.dialect}: it cannot serve calls without translation`,
    );
  };
  return {
    contract,
    name,
    schema,
    ...(sign !== undefined && { sign: sign.bind(adapter) }),
    ...(framing !== undefined && { framing }),
    ...(opens !== undefined && { opens }),
    authorize: authorize.bind(adapter),
    judge: judge.bind(adapter),
    protocols: [],
    request: never,
    own: adapter,
  };
}

/** Returns the adapter with this name; undefined if there is none. Exceptions of its functions become an AdapterFault. */
export function findAdapter(name: string): UpstreamAdapter | undefined {
  return adapters.get(name)?.guarded;
}

export function adapterNames(): string[] {
  return [...adapters.keys()].sort();
}
