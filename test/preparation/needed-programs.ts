/** The parts of a machine that the preparation reads and changes. */
export interface Machine {
  has(program: string): boolean;
  readonly isRoot: boolean;
  readonly hasAptGet: boolean;
  /** Installs Debian packages, all at once. */
  install(packages: readonly string[]): Promise<void>;
  /** Prints one line about a step. */
  tell(step: string, text: string): void;
}

/**
 * Installs the packages of all programs (program to Debian package) that the machine lacks.
 *
 * @throws with a list of what is missing and how to install it when the machine may not install, or has not.
 */
export async function preparePrograms(needed: Readonly<Record<string, string>>, machine: Machine): Promise<void> {
  const programs = Object.keys(needed);
  const missing = programs.filter((program) => !machine.has(program));
  const found = programs.filter((program) => !missing.includes(program));
  machine.tell('programs', `${found.length} of ${programs.length} found: ${found.join(', ')}`);
  if (missing.length === 0) return;
  machine.tell('programs', `missing: ${missing.join(', ')}`);
  const packages = [...new Set(missing.map((program) => needed[program] ?? program))];
  if (!machine.isRoot || !machine.hasAptGet) throw new Error(explainRefusal(missing, packages, machine));
  await machine.install(packages);
  const still = missing.filter((program) => !machine.has(program));
  if (still.length > 0)
    throw new Error(`The packages are installed, but these programs are not there: ${still.join(', ')}.`);
}

function explainRefusal(missing: readonly string[], packages: readonly string[], { hasAptGet }: Machine): string {
  const reason = hasAptGet
    ? 'Only root may install them.'
    : 'This machine has no apt-get, so they cannot be installed automatically.';
  return [
    `These programs are missing: ${missing.join(', ')}.`,
    reason,
    `On Debian, run as root: apt-get install --no-install-recommends ${packages.join(' ')}`,
    'Elsewhere, install them by other means and have them on PATH.',
  ].join('\n');
}
