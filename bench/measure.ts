/** Measures CPU time and memory of processes and all their children, from /proc. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK']).toString());

interface ProcessStat {
  readonly pid: number;
  readonly parent: number;
  /** The CPU time in seconds of the process and of its children that have exited. */
  readonly cpuSeconds: number;
}

/** Lists the running children of a process. */
export function childPids(parent: number): number[] {
  return everyone().flatMap((each) => (each.parent === parent ? [each.pid] : []));
}

export function cpuSeconds(roots: readonly number[]): number {
  return treeOf(roots).reduce((sum, each) => sum + each.cpuSeconds, 0);
}

export function residentBytes(roots: readonly number[]): number {
  return treeOf(roots).reduce((sum, { pid }) => sum + statusBytes(pid, 'VmRSS'), 0);
}

/** Returns the peak resident memory since the start or since `resetPeak`, summed over the processes and their children. */
export function peakResidentBytes(roots: readonly number[]): number {
  return treeOf(roots).reduce((sum, { pid }) => sum + statusBytes(pid, 'VmHWM'), 0);
}

export function resetPeak(roots: readonly number[]): void {
  for (const { pid } of treeOf(roots)) writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** Waits until the processes are idle, for example until the gateway has written its usage records. Late work would distort the next measurement. */
export async function quiet(roots: readonly number[], maxMs = 15_000): Promise<boolean> {
  const deadline = Date.now() + maxMs;
  while (Date.now() < deadline) {
    const before = cpuSeconds(roots);
    await pause(300);
    if (cpuSeconds(roots) - before <= 0.02) return true;
  }
  return false;
}

export function pause(ms: number): Promise<void> {
  return new Promise((wake) => setTimeout(wake, ms));
}

function treeOf(roots: readonly number[]): ProcessStat[] {
  const all = everyone();
  const members = new Set(roots);
  for (let grown = true; grown; ) {
    const before = members.size;
    for (const { pid, parent } of all) if (members.has(parent)) members.add(pid);
    grown = members.size > before;
  }
  return all.filter(({ pid }) => members.has(pid));
}

function everyone(): ProcessStat[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStat(Number(name)) ?? []);
}

/** Parses a process's statistics. A program's name may contain spaces and brackets, so that fields are counted after the last bracket. */
function readStat(pid: number): ProcessStat | undefined {
  const text = readProc(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const ticks = fields.slice(11, 15).reduce((sum, each) => sum + Number(each), 0);
  return { pid, parent: Number(fields[1]), cpuSeconds: ticks / TICKS_PER_SECOND };
}

function statusBytes(pid: number, field: string): number {
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readProc(`/proc/${pid}/status`) ?? '')?.[1];
  return Number(kilobytes ?? 0) * 1_024;
}

/** Reads a file of /proc; undefined if the process has exited. */
function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
