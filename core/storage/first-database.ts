/**
 * The embedded database of a first start. `npm run build` makes it once, because making one costs PGlite ten seconds of CPU and 500 MB that
 * it never frees. The file is compressed: a line of JSON with the paths and sizes, and then the contents of the files.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';

const FILE = join(__dirname, 'first-database.gz');

/** A file with its size in bytes, or a folder without a size. */
type Entry = readonly [path: string, bytes?: number];

/** Writes the database of a first start into a new folder. Without the packed file, as from sources, PGlite makes the database itself. */
export function unpackFirstDatabase(folder: string): void {
  if (existsSync(folder) || !existsSync(FILE)) return;
  const all = gunzipSync(readFileSync(FILE));
  let at = all.indexOf('\n') + 1;
  // The folder has another name until it is complete, so that an interrupted start leaves nothing that looks like a database.
  const unfinished = `${folder}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  for (const [path, bytes] of JSON.parse(all.toString('utf8', 0, at)) as Entry[]) {
    const to = join(unfinished, path);
    mkdirSync(bytes === undefined ? to : dirname(to), { recursive: true, mode: 0o700 });
    if (bytes === undefined) continue;
    writeFileSync(to, all.subarray(at, at + bytes), { mode: 0o600 });
    at += bytes;
  }
  renameSync(unfinished, folder);
}

/** Writes the file with the database of a first start, for `npm run build`. */
export async function packFirstDatabase(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-database-'));
  try {
    const pglite = new PGlite(folder);
    await pglite.waitReady;
    await pglite.close();
    const contents: Buffer[] = [];
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry): Entry => {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isFile()) return [relative(folder, path)];
      const content = readFileSync(path);
      contents.push(content);
      return [relative(folder, path), content.length];
    });
    writeFileSync(FILE, gzipSync(Buffer.concat([Buffer.from(`${JSON.stringify(entries)}\n`), ...contents])));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
