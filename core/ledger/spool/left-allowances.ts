import type { LeftAllowance } from '../allowances/take-over';
import type { Closing, KeptReport, Opening, SpoolFile } from './spool-file';

/** A spool file, and whether the process that wrote it has stopped. */
export interface KnownFile {
  readonly file: SpoolFile;
  readonly isLeft: boolean;
}

/** An allowance with one of its files, to which the next reports of it are written. */
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
 * Reads what spool files have about allowances. It leaves out calls that are open while their process lives. It also leaves out
 * calls that Postgres has, because the line of their report may be gone with its file.
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
