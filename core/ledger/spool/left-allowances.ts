import type { LeftAllowance } from '../allowances/take-over';
import type { Closing, KeptReport, Opening, SpoolFile } from './spool-file';

/** A file, and whether the process that wrote it is gone. */
export interface KnownFile {
  readonly file: SpoolFile;
  readonly isLeft: boolean;
}

/** One of its files: what is told of it from here is kept there. */
export type KeptAllowance = LeftAllowance & { readonly file: SpoolFile };

interface Reading {
  readonly accountId: string;
  readonly keyId: string;
  readonly generation: string;
  readonly file: SpoolFile;
  readonly openings: Map<string, Opening>;
  readonly closings: Map<string, Closing>;
  readonly reports: KeptReport[];
}

/**
 * Reads what files have of allowances. Calls that have not ended are left out while their process lives, and those that Postgres has:
 * the line of the report that told of them may be gone with its file.
 */
export async function readAllowances(
  files: readonly KnownFile[],
  generations: ReadonlySet<string>,
): Promise<readonly KeptAllowance[]> {
  const found = new Map<string, Reading>();
  const callsOf = new Map<string, Reading>();
  const readingOf = ({ accountId, keyId, generation }: Opening | KeptReport, file: SpoolFile): Reading => {
    const known = found.get(generation);
    if (known !== undefined) return known;
    const empty = { openings: new Map(), closings: new Map(), reports: [] };
    const reading: Reading = { accountId, keyId, generation, file, ...empty };
    found.set(generation, reading);
    return reading;
  };
  const closings: Closing[] = [];
  const running = new Set<string>();
  for (const { file, isLeft } of files) {
    for (const line of await file.lines()) {
      if (line.kind === 'settle' || line.kind === 'release') {
        closings.push(line);
      } else if (generations.has(line.generation)) {
        const reading = readingOf(line, file);
        if (line.kind === 'report') {
          reading.reports.push(line);
        } else if (file.waiting.has(line.rid)) {
          reading.openings.set(line.rid, line);
          callsOf.set(line.rid, reading);
          if (!isLeft) running.add(line.rid);
        }
      }
    }
  }
  for (const closing of closings) {
    callsOf.get(closing.rid)?.closings.set(closing.rid, closing);
    running.delete(closing.rid);
  }
  for (const rid of running) callsOf.get(rid)?.openings.delete(rid);
  for (const { reports } of found.values()) reports.sort((one, other) => one.sequence - other.sequence);
  return [...found.values()];
}
