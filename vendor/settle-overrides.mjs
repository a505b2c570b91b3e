// `npm pack` runs this first. npm heeds `overrides` of the project it installs, not those of a package: Express Gateway goes into the
// package with all it needs, and says itself which versions that is. Otherwise npm would fetch the old ones beside them later on.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ROOT = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..');

const read = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

const { overrides } = read(ROOT);
const overridden = new Map(Object.entries(overrides['express-gateway']));
const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));

for (const [path, { dev, link }] of Object.entries(packages)) {
  const folder = join(ROOT, path);
  if (path === '' || dev || link || !existsSync(join(folder, 'package.json'))) continue;
  settle(folder);
}

/** Names the installed version of each overridden dependency. Omits a dependency that is never loaded. */
function settle(folder) {
  const manifest = read(folder);
  let isChanged = false;
  for (const name of Object.keys(manifest.dependencies ?? {})) {
    const override = overridden.get(name);
    if (override === undefined) continue;
    const settled = override.startsWith('file:') ? undefined : read(find(name, folder)).version;
    if (manifest.dependencies[name] === settled) continue;
    if (settled === undefined) delete manifest.dependencies[name];
    else manifest.dependencies[name] = settled;
    isChanged = true;
  }
  // Types are for who compiles; npm would install them wherever the gateway runs.
  for (const name of Object.keys(manifest.peerDependencies ?? {})) {
    if (!name.startsWith('@types/')) continue;
    delete manifest.peerDependencies[name];
    isChanged = true;
  }
  // A new file in its place: the old one may be linked from elsewhere.
  if (!isChanged) return;
  writeFileSync(join(folder, 'package.json.new'), `${JSON.stringify(manifest, null, 2)}\n`);
  renameSync(join(folder, 'package.json.new'), join(folder, 'package.json'));
}

/** Where a package finds another, as Node looks for it. */
function find(name, from) {
  const folder = join(from, 'node_modules', name);
  if (existsSync(folder)) return folder;
  if (from === ROOT) throw new Error(`${name} is not installed: run npm ci`);
  return find(name, dirname(from));
}
