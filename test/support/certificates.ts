import { execFile } from 'node:child_process';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from './programs';

export interface TestAuthority {
  /** The authority's certificate in PEM, which clients trust. */
  readonly ca: string;
  /** Writes a key and a certificate for hosts and addresses, both as `name.pem` and `name.key` in the folder. Returns their paths. */
  issue(name: string, hosts: readonly string[]): Promise<{ readonly key: string; readonly cert: string }>;
}

const run = promisify(execFile);

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** Makes a test authority in a folder with openssl. */
export async function newAuthority(folder: string): Promise<TestAuthority> {
  const openssl = (...args: readonly string[]) => run(findProgram('openssl'), args, { cwd: folder });
  const self = ['-subj', '/CN=authority of the tests', '-addext', 'keyUsage=critical,keyCertSign'];
  await openssl('req', '-x509', ...KEY, '-days', '2', '-keyout', 'ca.key', '-out', 'ca.pem', ...self);
  return {
    ca: await readFile(join(folder, 'ca.pem'), 'utf8'),
    issue: async (name, hosts) => {
      const names = hosts.map((host) => `${/^[\d.]+$/.test(host) ? 'IP' : 'DNS'}:${host}`).join(',');
      const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-days', '1', '-subj', `/CN=${name}`];
      const alternatives = ['-addext', `subjectAltName=${names}`, '-addext', 'basicConstraints=critical,CA:FALSE'];
      await openssl(
        'req',
        '-x509',
        ...KEY,
        ...signed,
        ...alternatives,
        '-keyout',
        `${name}.key`,
        '-out',
        `${name}.pem`,
      );
      return { key: join(folder, `${name}.key`), cert: join(folder, `${name}.pem`) };
    },
  };
}

/** Replaces a file atomically, as tools that renew certificates do. */
export async function replaceFile(path: string, text: string | Buffer): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}
