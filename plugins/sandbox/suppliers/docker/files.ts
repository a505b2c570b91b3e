import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import * as paths from '../confined-path';
import * as supplier from '../supplier';
import { type DockerEngine, type EngineAnswer, messageOf } from './engine';
import { DOCKER_COMMAND_MARK, runExec, signalCommand, startExec } from './exec';

/** Loads tar-stream, which only the files of containers need. */
const tarStream = () => require('tar-stream') as typeof import('tar-stream');

/** The user and group that own written files. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** Accesses files through the engine's archive (tar) endpoints. Lists and removals run a command inside the instance. */
export class ContainerFiles implements supplier.SupplierFiles {
  constructor(
    private readonly engine: DockerEngine,
    private readonly ownerOf: (reference: supplier.InstanceReference) => Promise<Owner>,
  ) {}

  async read(reference: supplier.InstanceReference, path: string): Promise<supplier.FileContent> {
    const place = await this.#find(reference, paths.confinedNames(path));
    if (place.stat === undefined) throw paths.notFound(place.names);
    if (place.stat.type !== 'file') throw paths.notAFile(place.stat.type);
    const { status, content } = await this.engine.open('GET', archivePath(reference, place.names));
    if (status !== 200) {
      content.resume();
      throw status === 404 ? paths.notFound(place.names) : new supplier.Ambiguous(`the engine answered ${status}`);
    }
    return { byteLength: place.stat.size, content: Readable.from(firstEntry(content), { objectMode: false }) };
  }

  async write(reference: supplier.InstanceReference, path: string, content: Buffer): Promise<void> {
    const place = await this.#find(reference, paths.confinedNames(path));
    if (place.names.length === 0 || place.stat?.type === 'folder') throw paths.notAFile('folder');
    if (place.stat?.type === 'other') throw paths.notAFile('other');
    paths.mustBeWritable(place.names);
    const owner = await this.ownerOf(reference);
    const tar = tarStream().pack();
    const below = place.names.slice(place.known.length);
    below.slice(0, -1).forEach((_, index) => {
      const name = below.slice(0, index + 1).join('/');
      tar.entry({ name, type: 'directory', mode: 0o755, ...owner });
    });
    const mode = place.stat === undefined ? 0o644 : place.stat.mode & 0o777;
    const name = place.stat === undefined ? below.join('/') : (place.names.at(-1) ?? '');
    const folder = place.stat === undefined ? place.known : place.names.slice(0, -1);
    tar.entry({ name, mode, mtime: new Date(), ...owner }, content);
    tar.finalize();
    await this.#unpack(reference, absolute(folder), tar);
  }

  async list(
    reference: supplier.InstanceReference,
    path: string,
    depth: number,
  ): Promise<readonly supplier.FileEntry[]> {
    const place = await this.#find(reference, paths.confinedNames(path));
    if (place.stat === undefined) throw paths.notFound(place.names);
    if (place.stat.type !== 'folder') throw new supplier.FileFailure('not-folder', 'this is not a folder');
    const id = randomUUID();
    const { output, exit } = await startExec(this.engine, reference, {
      argv: ['find', absolute(place.names), '-mindepth', '1', '-maxdepth', String(depth), ...PRINT_PATHS],
      env: { [DOCKER_COMMAND_MARK]: id },
    });
    const entries: supplier.FileEntry[] = [];
    for await (const entry of readEntries(output)) {
      entries.push({ ...entry, path: paths.shownPath(entry.path) });
      if (entries.length === supplier.LIST_LIMIT) break;
    }
    if (entries.length < supplier.LIST_LIMIT) await exit;
    else await runExec(this.engine, reference, { argv: signalCommand(id, 'SIGKILL'), env: {} });
    return entries;
  }

  async remove(reference: supplier.InstanceReference, path: string): Promise<void> {
    const { folder, last } = paths.removableNames(path);
    const parent = await this.#find(reference, folder);
    const target = [...parent.names, last];
    paths.mustBeRemovable(target);
    const { status } = await this.engine.head(archivePath(reference, target));
    if (status === 404) throw paths.notFound(target);
    const { exitCode } = await runExec(this.engine, reference, {
      argv: ['rm', '-rf', absolute(target)],
      env: {},
    });
    if (exitCode !== 0) throw new supplier.FileFailure('not-allowed', 'some of it could not be removed');
  }

  /** Creates the work folder before the instance is started. */
  async makeWorkFolder(reference: supplier.InstanceReference, owner: Owner): Promise<void> {
    const tar = tarStream().pack();
    tar.entry({ name: supplier.WORK_FOLDER.slice(1), type: 'directory', mode: 0o755, mtime: new Date(), ...owner });
    tar.finalize();
    await this.#unpack(reference, '/', tar);
  }

  async #unpack(reference: supplier.InstanceReference, folder: string, tar: AsyncIterable<unknown>): Promise<void> {
    const answer = await this.engine.ask(
      'PUT',
      `/containers/${reference.id}/archive?noOverwriteDirNonDir=1&path=${encodeURIComponent(folder)}`,
      { content: Readable.from(tar), contentType: 'application/x-tar' },
    );
    if (answer.status !== 200) throw unpackFailure(answer);
  }

  /** Resolves a path one name at a time, so that no link leads out of the root. Returns no `stat` if the path does not exist. */
  async #find(reference: supplier.InstanceReference, names: readonly string[]): Promise<ResolvedPath> {
    let known: readonly string[] = [];
    let stat: PathStat | undefined = { type: 'folder', size: 0, mode: 0o755, linkTarget: '' };
    for (const [index, name] of names.entries()) {
      const next = await this.#stat(reference, [...known, name]);
      if (next === undefined) return { names: [...known, ...names.slice(index)], known, stat: undefined };
      if (next.type === 'link') {
        const target = posix.resolve('/', next.linkTarget);
        return this.#find(reference, paths.confinedNames([target, ...names.slice(index + 1)].join('/')));
      }
      const isLast = index === names.length - 1;
      if (!isLast && next.type !== 'folder')
        throw new supplier.FileFailure('not-folder', 'a part of the path is not a folder');
      known = [...known, name];
      stat = next;
    }
    return { names: known, known, stat };
  }

  async #stat(reference: supplier.InstanceReference, names: readonly string[]): Promise<PathStat | undefined> {
    const { status, headers } = await this.engine.head(archivePath(reference, names));
    if (status === 200) return readStat(String(headers['x-docker-container-path-stat']));
    if (status !== 404) throw await this.#unreadable(reference, names);
    // The engine answers 404 both for a missing path and for a missing instance.
    const { status: ofInstance } = await this.engine.ask('GET', `/containers/${reference.id}/json`);
    if (ofInstance === 404) throw new supplier.InstanceGone(`the instance ${reference.name} does not exist`);
    return undefined;
  }

  /** Sends the request again as GET, because an answer to HEAD has no error message. */
  async #unreadable(reference: supplier.InstanceReference, names: readonly string[]): Promise<Error> {
    const message = messageOf(await this.engine.ask('GET', archivePath(reference, names)));
    // `too many links` are the words of the engine's own error message.
    if (message.includes('too many links'))
      return new supplier.FileFailure('path-invalid', 'path: too many symbolic links');
    return new supplier.Ambiguous(message);
  }
}

interface ResolvedPath {
  /** The names of the path below the instance's root, with every link replaced by its target. */
  readonly names: readonly string[];
  /** The names at the start of the path that exist in the instance; the names after them do not exist. */
  readonly known: readonly string[];
  readonly stat: PathStat | undefined;
}

interface PathStat {
  readonly type: supplier.FileEntry['type'];
  readonly size: number;
  readonly mode: number;
  /** The target of a link: an absolute path in the instance, with all further links resolved. */
  readonly linkTarget: string;
}

/** The bits of a file mode with which Go, the language of Docker, marks the kind of a file. */
const GO_FOLDER = 2 ** 31;
const GO_LINK = 2 ** 27;
const GO_KINDS = [GO_FOLDER, GO_LINK, 2 ** 26, 2 ** 25, 2 ** 24, 2 ** 21, 2 ** 19];

function readStat(header: string): PathStat {
  const { size, mode, linkTarget } = JSON.parse(Buffer.from(header, 'base64').toString()) as {
    size: number;
    mode: number;
    linkTarget: string;
  };
  const kind = GO_KINDS.find((bit) => Math.floor(mode / bit) % 2 === 1);
  const type = kind === undefined ? 'file' : kind === GO_FOLDER ? 'folder' : kind === GO_LINK ? 'link' : 'other';
  return { type, size, mode: mode % 0o1000, linkTarget };
}

/** The arguments that make `find` print each path's kind and mode, size and time, then its name up to a NUL. They leave out the kernel's folders. */
const PRINT_PATHS = [
  ...['-path', '/proc/*', '-prune', '-o', '-path', '/sys/*', '-prune', '-o', '-path', '/dev/*', '-prune', '-o'],
  ...['-exec', 'sh', '-c'],
  'for path; do stat -c "%f %s %Y" "$path" 2>/dev/null && printf "%s\\0" "$path"; done',
  'sh',
  '{}',
  '+',
] as const;

function absolute(names: readonly string[]): string {
  return `/${names.join('/')}`;
}

function archivePath({ id }: supplier.InstanceReference, names: readonly string[]): string {
  return `/containers/${id}/archive?path=${encodeURIComponent(absolute(names))}`;
}

async function* firstEntry(archive: Readable): AsyncGenerator<Buffer> {
  const reader = tarStream().extract();
  const filled = pipeline(archive, reader);
  // This handler ignores a failure, because the code that reads the pipeline reports that failure.
  filled.catch(() => undefined);
  try {
    for await (const entry of reader) {
      for await (const piece of entry) yield piece as Buffer;
      return;
    }
  } finally {
    archive.destroy();
  }
}

function unpackFailure(answer: EngineAnswer): Error {
  const message = messageOf(answer);
  if (/no space left|quota exceeded/i.test(message))
    return new supplier.FileFailure('no-space', 'no space is left on the disk');
  if (answer.status === 404) return new supplier.InstanceGone(message);
  const isRefused = answer.status === 400 || answer.status === 403 || message.includes('marked read-only');
  if (isRefused) return new supplier.FileFailure('not-allowed', message);
  return new supplier.Ambiguous(message);
}

const KIND_BITS = 0xf000;
const KINDS: Readonly<Record<number, supplier.FileEntry['type']>> = { 32768: 'file', 16384: 'folder', 40960: 'link' };

/** Yields the file entries in the output of `find`, such as `81a4 12 1700000000\n<path>\0`. A path may hold any character but NUL. */
async function* readEntries(output: AsyncIterable<supplier.OutputFrame>): AsyncGenerator<supplier.FileEntry> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const { stream, bytes } of output) {
    if (stream !== 'stdout') continue;
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    for (let end = rest.indexOf(0); end !== -1; end = rest.indexOf(0)) {
      yield toEntry(rest.subarray(0, end).toString());
      rest = rest.subarray(end + 1);
    }
  }
}

function toEntry(text: string): supplier.FileEntry {
  const lineEnd = text.indexOf('\n');
  const [mode = '', size, seconds] = text.slice(0, lineEnd).split(' ');
  return {
    path: text.slice(lineEnd + 1),
    type: KINDS[Number.parseInt(mode, 16) & KIND_BITS] ?? 'other',
    byteLength: Number(size),
    modifiedAt: new Date(Number(seconds) * 1_000),
  };
}
