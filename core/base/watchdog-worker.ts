/** The program of the watchdog thread, which core/base/watchdog.ts starts. */
import { Session } from 'node:inspector';
import { sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import {
  BEAT,
  BOUND_MS,
  EVERY_MS,
  type LoopBlock,
  OWNER,
  type ToWatchdog,
  type WatchdogInput,
} from './watchdog-messages';

/** How long the watchdog waits for a stack trace. The inspector never answers while the process runs code outside of JavaScript. */
const STACK_WITHIN_MS = 1_000;
/**
 * The most milliseconds that one check of the watchdog adds to the measured length of a block. If the planned time between two checks is
 * longer than this number, that time is the limit instead.
 */
const COUNTED_MS = 500;
const FRAMES_TOLD = 8;

interface Frame {
  readonly functionName: string;
  readonly file: string;
  readonly line: number;
}

const { shared, owners: given } = workerData as WatchdogInput;
const owners = [...given];
const folders = new Map<string, string>();

parentPort?.on('message', (message: ToWatchdog) => {
  if (message === 'busy') lookLater();
  else if ('owner' in message) owners.push(message.owner);
  else folders.set(message.plugin, message.folder + sep);
});

let beat = shared[BEAT];
let lookedMs = performance.now();
let blockedMs = 0;
/** How long the block must last, in milliseconds, before the next log line. It doubles, so that an endless loop does not fill the log. */
let tellAtMs: number | undefined;
/**
 * How long the code of each owner (plugin, policy, adapter or Tollgate) has run in the current block of the event loop, in milliseconds. A
 * block may include code of several owners.
 */
const ranMs = new Map<string, number>();
/** The plugin found in a stack trace that was taken during the current block of the event loop. */
let seenPlugin: string | undefined;

let nextLook: NodeJS.Timeout | undefined;
lookLater();

function lookLater(): void {
  clearTimeout(nextLook);
  nextLook = setTimeout(look, shared[EVERY_MS]);
}

function look(): void {
  lookLater();
  const nowMs = performance.now();
  // Limits the time that one check counts, because a process that the system suspended was not blocked.
  const countedMs = Math.min(nowMs - lookedMs, Math.max(COUNTED_MS, shared[EVERY_MS] as number));
  blockedMs += countedMs;
  lookedMs = nowMs;
  if (shared[BEAT] !== beat) {
    if (tellAtMs !== undefined) {
      const by = nameOf(longestOwner(), seenPlugin);
      parentPort?.postMessage({ by, blockedMs: Math.round(blockedMs) } satisfies LoopBlock);
    }
    beat = shared[BEAT];
    blockedMs = 0;
    tellAtMs = undefined;
    ranMs.clear();
    seenPlugin = undefined;
    return;
  }
  const entered = owners[shared[OWNER] as number] as string;
  ranMs.set(entered, (ranMs.get(entered) ?? 0) + countedMs);
  if (blockedMs < (tellAtMs ?? (shared[BOUND_MS] as number))) return;
  tellAtMs = blockedMs * 2;
  void tellBlock(Math.round(blockedMs), entered, beat);
}

/** Returns the owner (plugin, policy, adapter or Tollgate) whose code has run longest in the current block of the event loop. */
function longestOwner(): string {
  return [...ranMs].reduce((longest, other) => (other[1] > longest[1] ? other : longest))[0];
}

/** Returns the given owner of the code. If that owner is Tollgate, returns the plugin instead, if there is one. */
function nameOf(owner: string, plugin: string | undefined): string {
  return owner === owners[0] ? (plugin ?? owner) : owner;
}

async function tellBlock(forMs: number, entered: string, atBeat: number | undefined): Promise<void> {
  const owner = longestOwner();
  const taken = await stackOfProcess();
  // Discards the stack trace if the block had already ended, or if the noted owner is not the owner with the most time in it. Such a trace shows
  // unrelated code.
  const stack = shared[BEAT] === atBeat && entered === owner ? taken : [];
  const plugin = pluginIn(stack) ?? seenPlugin;
  if (beat === atBeat) seenPlugin = plugin;
  const at = stack.slice(0, FRAMES_TOLD).map(({ functionName, file, line }) => `${functionName} (${file}:${line})`);
  // The logger is loaded at the first block of the event loop, because most watchdog threads never find a block.
  const { log } = require('./log') as typeof import('./log');
  log.error({ by: nameOf(owner, plugin), blockedMs: forMs, at }, 'the event loop is blocked: no request is served');
}

/**
 * Returns the plugin whose code is innermost in the stack; undefined if the stack has none.
 * The stack is needed because the process notes a plugin only while it loads, starts or checks the plugin. It notes no owner of code that
 * continues after an `await`.
 */
function pluginIn(stack: readonly Frame[]): string | undefined {
  for (const { file } of stack)
    for (const [plugin, folder] of folders) if (file.startsWith(folder)) return `plugin ${plugin}`;
  return undefined;
}

/**
 * Returns the stack of the process, innermost frame first; empty if there is none within a second. Taking it pauses the process for a
 * moment, like a debugger.
 */
function stackOfProcess(): Promise<readonly Frame[]> {
  const session = new Session();
  session.connectToMainThread();
  return new Promise((resolve) => {
    const finish = (stack: readonly Frame[]) => {
      clearTimeout(timer);
      session.disconnect();
      resolve(stack);
    };
    const timer = setTimeout(finish, STACK_WITHIN_MS, []);
    const files = new Map<string, string>();
    session.on('Debugger.scriptParsed', ({ params: { scriptId, url } }) => files.set(scriptId, url));
    session.on('Debugger.paused', ({ params }) => {
      session.post('Debugger.resume');
      finish(
        params.callFrames.map(({ functionName, location: { scriptId, lineNumber } }) => ({
          functionName: functionName || '(anonymous)',
          file: pathOf(files.get(scriptId) ?? ''),
          line: lineNumber + 1,
        })),
      );
    });
    session.post('Debugger.enable');
    session.post('Debugger.pause');
  });
}

function pathOf(url: string): string {
  return url.startsWith('file:') ? fileURLToPath(url) : url;
}
