/** A program of this project that runs in a thread or process of its own. */
interface WorkerEntry {
  readonly file: string;
  /** The arguments that Node needs to run it, because tests run from the sources. */
  readonly execArgv: string[];
}

/** Returns a program of this project. @param file as `require.resolve` gives it */
export function workerEntry(file: string): WorkerEntry {
  return { file, execArgv: file.endsWith('.ts') ? ['--require', 'tsx/cjs'] : [] };
}
