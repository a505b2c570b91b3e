/** The kinds of extensions that packages bring to the gateway. */
type ExtensionKind = 'adapter' | 'driver' | 'plugin' | 'policy';

/** The members that a value must have, whatever its types say: a package may be written without a compiler. */
export interface ExtensionContract {
  readonly kind: ExtensionKind;
  /** The version that this Tollgate understands, such as `policy/1`. */
  readonly version: string;
  /** The functions that the gateway calls. */
  readonly functions: readonly string[];
  readonly optional?: readonly string[];
}

let registering = 'Tollgate';

/** Runs what registers the parts of a package. */
export function registerFrom<T>(packageName: string, work: () => T): T {
  registering = packageName;
  try {
    return work();
  } finally {
    registering = 'Tollgate';
  }
}

/** Returns the package whose parts are registered now, for the error about a second part of one name. */
export function registeringPackage(): string {
  return registering;
}

/** Checks a value against its contract. @throws Error that says what is wrong and what to do, when the value breaks the contract */
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
      `${who} requires the contract ${written}, but this version of Tollgate supports ${version}: install a release of its package for that one`,
    );
  const missing = functions.filter((each) => typeof members[each] !== 'function');
  if (missing.length > 0) throw new Error(`${who} lacks ${missing.join(', ')}: ${written} asks for each as a function`);
  const odd = optional.filter((each) => members[each] !== undefined && typeof members[each] !== 'function');
  if (odd.length > 0)
    throw new Error(`${who} has ${odd.join(', ')}, and not as a function: leave it out, or make it one`);
  if (typeof schema !== 'object' || schema === null)
    throw new Error(`${who} has no schema: write \`schema: { type: 'object', properties: {} }\` if it has no settings`);
}

function articleOf(kind: ExtensionKind): string {
  return kind === 'adapter' ? 'an' : 'a';
}
