import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { WORK_FOLDER } from '../../../../core/supplier';

const run = promisify(execFile);

/** What a command is started with. Its own variables are not among it: see `variableWords`. */
export interface Confinement {
  readonly files: string;
  readonly temporary: string;
  readonly cwd: string;
  readonly hasNetwork: boolean;
  /** Variables that everything inside inherits, and bubblewrap itself does not have. */
  readonly marks: Readonly<Record<string, string>>;
  /** Words that come before these, so that these prevail. */
  readonly more?: readonly string[];
}

/** Programs and libraries, and what they look up; nothing of anybody's data. */
const READABLE = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/etc/alternatives',
  '/etc/ld.so.cache',
  '/etc/ssl/certs',
  '/etc/passwd',
  '/etc/group',
  '/etc/nsswitch.conf',
  '/etc/hosts',
];

/** The words before a command's own that put it into its own namespaces, with the instance's folder as all it may write. */
export function bubblewrapOf({ files, temporary, cwd, hasNetwork, marks, more = [] }: Confinement): readonly string[] {
  return [
    'bwrap',
    ...more,
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...(hasNetwork ? [] : ['--unshare-net']),
    ...['--uid', '1000', '--gid', '1000', '--cap-drop', 'ALL', '--hostname', 'sandbox', '--new-session'],
    ...READABLE.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc', '--dev', '/dev', '--bind', temporary, '/tmp', '--bind', files, WORK_FOLDER],
    ...variableWords(marks),
    ...['--chdir', cwd, '--'],
  ];
}

/**
 * The words that set a command's variables inside. Bubblewrap reads the customer's from a descriptor: in its own environment
 * they would decide what is run outside, and among its words everybody could read them.
 */
export function variableWords(variables: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value]);
}

/** Of `startProcess`: the descriptor of `words`. */
export const READ_WORDS = ['--args', '3'] as const;

/** Whether bubblewrap is installed and the kernel lets it do all it is asked for. */
export async function canBubblewrap(folder: string): Promise<boolean> {
  const confinement = { files: folder, temporary: folder, cwd: WORK_FOLDER, hasNetwork: false, marks: {} };
  const [program = '', ...words] = bubblewrapOf(confinement);
  try {
    await run(program, [...words, '/bin/sh', '-c', ':'], { timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
}
