/** A program of this project that runs in a thread or process of its own. */
export interface OwnProgram {
  readonly file: string;
  /** What Node needs to run it: tests run from the sources. */
  readonly execArgv: string[];
}

/** @param file as `require.resolve` gives it */
export function ownProgram(file: string): OwnProgram {
  return { file, execArgv: file.endsWith('.ts') ? ['--require', 'tsx/cjs'] : [] };
}
