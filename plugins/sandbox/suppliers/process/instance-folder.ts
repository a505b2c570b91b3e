import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type InstanceState, type InstanceSummary, type Tags, WORK_FOLDER } from '../supplier';
import { endHolderOf, type Holder } from './holder';

/** The record of an instance: everything except its files. */
export interface Instance {
  readonly id: string;
  readonly name: string;
  readonly tags: Tags;
  readonly createdAt: string;
  readonly state: Extract<InstanceState, 'running' | 'suspended'>;
  /** Whether its ports may be dialled. */
  readonly ports: boolean;
  readonly memoryGiB: number;
  /** The process that keeps its namespaces; undefined if it has none. */
  readonly holder: Holder | undefined;
}

/** An instance that ends with this process until `keep` is called. */
export interface StartedInstance {
  readonly instance: Instance;
  keep(): Promise<void>;
}

const RECORD = 'instance.json';

/** The prefix of folders that are being made or removed. The next start removes those that a crash left behind. */
const UNFINISHED = '.unfinished-';

/** Keeps one folder per instance: `instance.json`, and `root` with everything that the instance itself sees. */
export class InstanceFolders {
  private constructor(private readonly root: string) {}

  static async open(folder: string): Promise<InstanceFolders> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const root = await realpath(folder);
    const left = (await readdir(root)).filter((name) => name.startsWith(UNFINISHED));
    for (const name of left) {
      const instance = await read(join(root, name));
      if (instance !== undefined) await endHolderOf(instance);
      await rm(join(root, name), { recursive: true, force: true });
    }
    return new InstanceFolders(root);
  }

  rootOf(name: string): string {
    return join(this.root, name, 'root');
  }

  /** Makes an instance that `start` starts in its root. If several are made at once under one name, only one of them has `isMade` set. */
  async make(
    name: string,
    start: (root: string) => Promise<StartedInstance>,
  ): Promise<{ readonly instance: Instance; readonly isMade: boolean }> {
    const unfinished = join(this.root, `${UNFINISHED}${randomUUID()}`);
    try {
      await makeRoot(join(unfinished, 'root'));
      const { instance, keep } = await start(join(unfinished, 'root'));
      await writeFile(join(unfinished, RECORD), JSON.stringify(instance));
      await keep();
      return { instance, isMade: await this.#place(unfinished, name) };
    } finally {
      await rm(unfinished, { recursive: true, force: true });
    }
  }

  async #place(unfinished: string, name: string): Promise<boolean> {
    try {
      await rename(unfinished, join(this.root, name));
      return true;
    } catch (error) {
      if (['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
      throw error;
    }
  }

  find(name: string): Promise<Instance | undefined> {
    return read(join(this.root, name));
  }

  async keep(instance: Instance): Promise<void> {
    const file = join(this.root, instance.name, RECORD);
    await writeFile(`${file}.new`, JSON.stringify(instance));
    await rename(`${file}.new`, file);
  }

  async remove(name: string): Promise<void> {
    const unfinished = join(this.root, `${UNFINISHED}${randomUUID()}`);
    try {
      await rename(join(this.root, name), unfinished);
    } catch (error) {
      if (!isMissing(error)) throw error;
      return;
    }
    await rm(unfinished, { recursive: true, force: true });
  }

  async all(): Promise<readonly Instance[]> {
    const names = (await readdir(this.root)).filter((name) => !name.startsWith(UNFINISHED));
    const found = await Promise.all(names.map((name) => this.find(name)));
    return found.filter((each) => each !== undefined);
  }
}

/** Creates the folders that every instance has. */
export async function makeRoot(root: string): Promise<void> {
  for (const folder of [WORK_FOLDER, '/tmp', '/etc']) await mkdir(`${root}${folder}`, { recursive: true });
}

async function read(folder: string): Promise<Instance | undefined> {
  try {
    return JSON.parse(await readFile(join(folder, RECORD), 'utf8')) as Instance;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

export function toSummary({ id, name, tags, createdAt }: Instance, state: InstanceState): InstanceSummary {
  return { reference: { id, name }, state, tags, createdAt: new Date(createdAt) };
}
