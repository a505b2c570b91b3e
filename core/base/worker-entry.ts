/** A program of this project that runs in its own thread or process. */
interface WorkerEntry {
  readonly file: string;
  /** The arguments with which Node can run the program from its TypeScript sources, because tests do that. */
  readonly execArgv: string[];
}

/** Returns what Node needs to start a program of this project. @param file as `require.resolve` returns it */
export function workerEntry(file: string): WorkerEntry {
  return { file, execArgv: file.endsWith('.ts') ? ['--require', 'tsx/cjs'] : [] };
}
