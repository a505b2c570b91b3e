import { pathToFileURL } from 'node:url';
import { PROJECT } from '../support/sources';
import { run } from './run';

/** Clones the project at a commit, over Git's own protocol: what is not committed stays behind. */
export async function clone(commit: string, folder: string, signal: AbortSignal): Promise<void> {
  await run(['git', 'clone', '--quiet', '--no-checkout', pathToFileURL(PROJECT).href, folder], signal);
  await run(['git', '-C', folder, 'checkout', '--quiet', '--detach', commit], signal);
}
