/** The kinds of extensions that a package can register. */
type ExtensionKind = 'adapter' | 'driver' | 'plugin' | 'policy';

/** The members that an extension must have. They are checked at run time, because its author may not use a TypeScript compiler. */
export interface ExtensionContract {
  readonly kind: ExtensionKind;
  /** The contract version that this Tollgate supports, such as `policy/1`. */
  readonly version: string;
  /** The functions that the extension must have, because the gateway calls them. */
  readonly functions: readonly string[];
  readonly optional?: readonly string[];
}

let registering = 'Tollgate';

/** Runs the work that registers a package's extensions, with `registeringPackage` set to its name. */
export function registerFrom<T>(packageName: string, work: () => T): T {
  registering = packageName;
  try {
    return work();
  } finally {
    registering = 'Tollgate';
  }
}

/** Returns the name of the package that registers extensions now, for the error about a duplicate name. */
export function registeringPackage(): string {
  return registering;
}

/** Checks an extension against its contract. @throws Error that says what is wrong and what to do, when the extension breaks the contract */
export function requireContract(value: unknown, contract: ExtensionContract): void {
  const { kind, version, functions, optional = [] } = contract;
  const members = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
  const { name, contract: written, schema } = members;
  if (typeof name !== 'string' || name === '')
    throw new Error(`${articleOf(kind)} ${kind} has no \`name\`: add the name that configurations use`);
  const who = `the ${kind} "${name}"`;
  if (typeof written !== 'string') throw new Error(`${who} names no contract: write \`contract: '${version}'\` in it`);
  if (written !== version)
    throw new Error(
      `${who} requires the contract ${written}, but this version of Tollgate supports ${version}: install a release of its package for that contract`,
    );
  const missing = functions.filter((each) => typeof members[each] !== 'function');
  if (missing.length > 0)
    throw new Error(`${who} lacks ${missing.join(', ')}: the contract ${written} requires each as a function`);
  const odd = optional.filter((each) => members[each] !== undefined && typeof members[each] !== 'function');
  if (odd.length > 0)
    throw new Error(`${who} has ${odd.join(', ')}, and not as a function: remove the member, or make it a function`);
  if (typeof schema !== 'object' || schema === null)
    throw new Error(`${who} has no schema: write \`schema: { type: 'object', properties: {} }\` if it has no settings`);
}

function articleOf(kind: ExtensionKind): string {
  return kind === 'adapter' ? 'an' : 'a';
}
