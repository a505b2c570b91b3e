import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { archiveFor, httpProxyIn } from './apt';
import { ask, run } from './run';

/** The checkout comes from Git. Git and npm verify their peers by the certificates. */
const PACKAGES = 'ca-certificates,git';

const TARGET_FORMAT = '$(REPO_URI) $(CODENAME) $(RELEASE) $(COMPONENT)';

/** Makes a minimal Debian of this release in a folder, from the machine's own apt sources. */
export async function makeDebian(folder: string, codename: string, signal: AbortSignal): Promise<void> {
  const targets = await ask('apt-get', ['indextargets', '--format', TARGET_FORMAT, 'Created-By: Packages']);
  const archive = archiveFor(codename, targets);
  if (archive === undefined)
    throw new Error(`apt has no source for ${codename}, component main. See its sources: apt-get indextargets`);
  const proxy = httpProxyIn(await ask('apt-config', ['dump']));
  const env = { ...(proxy === undefined ? {} : { http_proxy: proxy }), ...process.env };
  const unfinished = `${folder}.unfinished`;
  await run(['rm', '-rf', unfinished], signal);
  const include = `--include=${PACKAGES}`;
  await run(['debootstrap', '--variant=minbase', include, codename, unfinished, archive], signal, env);
  // The machine's own sources take its place.
  await rm(join(unfinished, 'etc/apt/sources.list'));
  await rename(unfinished, folder);
}
