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

/** How long to wait for a stack, because the inspector gets no answer from code outside of JavaScript. */
const STACK_WITHIN_MS = 1_000;
/** The most time that one look adds to a block, or the pause between two looks if that is longer. */
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
/** How long the block must last before the next log line, so that an endless loop does not fill the log. */
let tellAtMs: number | undefined;
/** How long each owner has run in the current block, in milliseconds, because one block may run the code of several. */
const ranMs = new Map<string, number>();
/** The plugin that a stack showed in the current block. */
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
  // A process that was suspended as a whole was not blocked.
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

/** Returns the owner that has run longest in the current block. */
function longestOwner(): string {
  return [...ranMs].reduce((longest, other) => (other[1] > longest[1] ? other : longest))[0];
}

/** Names a plugin whose code runs without an entered owner. */
function nameOf(owner: string, plugin: string | undefined): string {
  return owner === owners[0] ? (plugin ?? owner) : owner;
}

async function tellBlock(forMs: number, entered: string, atBeat: number | undefined): Promise<void> {
  const owner = longestOwner();
  const taken = await stackOfProcess();
  // A stack that was taken too late, or while another owner has run longer, shows other code.
  const stack = shared[BEAT] === atBeat && entered === owner ? taken : [];
  const plugin = pluginIn(stack) ?? seenPlugin;
  if (beat === atBeat) seenPlugin = plugin;
  const at = stack.slice(0, FRAMES_TOLD).map(({ functionName, file, line }) => `${functionName} (${file}:${line})`);
  // Loaded with the first block, because a thread that finds none needs no log.
  const { log } = require('./log') as typeof import('./log');
  log.error({ by: nameOf(owner, plugin), blockedMs: forMs, at }, 'the event loop is blocked: no request is served');
}

/**
 * Returns the plugin whose code is the innermost. The process notes only the adapters and policies that it enters, and not after
 * they have waited.
 */
function pluginIn(stack: readonly Frame[]): string | undefined {
  for (const { file } of stack)
    for (const [plugin, folder] of folders) if (file.startsWith(folder)) return `plugin ${plugin}`;
  return undefined;
}

/**
 * Returns the stack of the process, innermost frame first. It interrupts the process for a moment, like a debugger. Returns an
 * empty stack when it cannot.
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
