import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstanceState, InstanceSummary, Tags } from '../../../../core/supplier';

/** What is known of an instance beside its files. */
export interface Instance {
  readonly id: string;
  readonly name: string;
  readonly tags: Tags;
  readonly createdAt: string;
  readonly state: Extract<InstanceState, 'running' | 'suspended'>;
  /** Its commands see the network of the machine. */
  readonly ports: boolean;
}

/** What is being made or removed; what a crash leaves of it is removed at the next start. */
const UNFINISHED = '.unfinished-';

/** One folder per instance: `instance.json`, `files` (the instance's own folder) and `tmp`. */
export class InstanceFolders {
  private constructor(private readonly root: string) {}

  static async open(folder: string): Promise<InstanceFolders> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const root = await realpath(folder);
    const left = (await readdir(root)).filter((name) => name.startsWith(UNFINISHED));
    await Promise.all(left.map((name) => rm(join(root, name), { recursive: true, force: true })));
    return new InstanceFolders(root);
  }

  filesOf(name: string): string {
    return join(this.root, name, 'files');
  }

  temporaryOf(name: string): string {
    return join(this.root, name, 'tmp');
  }

  /** False when the name is taken: of several at once, one makes it. */
  async make(instance: Instance): Promise<boolean> {
    const unfinished = join(this.root, `${UNFINISHED}${randomUUID()}`);
    for (const folder of ['files', 'tmp']) await mkdir(join(unfinished, folder), { recursive: true });
    await writeFile(join(unfinished, 'instance.json'), JSON.stringify(instance));
    try {
      await rename(unfinished, join(this.root, instance.name));
      return true;
    } catch (error) {
      await rm(unfinished, { recursive: true, force: true });
      if (['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
      throw error;
    }
  }

  async find(name: string): Promise<Instance | undefined> {
    try {
      return JSON.parse(await readFile(join(this.root, name, 'instance.json'), 'utf8')) as Instance;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async keep(instance: Instance): Promise<void> {
    const file = join(this.root, instance.name, 'instance.json');
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

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

export function toSummary({ id, name, state, tags, createdAt }: Instance): InstanceSummary {
  return { reference: { id, name }, state, tags, createdAt: new Date(createdAt) };
}
