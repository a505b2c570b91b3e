import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { type Extent, installOwnPackage } from './own-packages';

/** The separate package that lists the agents and SDKs with their versions. */
const AGENTS = resolve(__dirname, '../agents');
/** The folder into which npm installs them. */
export const AGENT_PACKAGES = join(AGENTS, 'node_modules');

/** Installs the agents if they are missing or have other versions: Claude Code and Codex, which the tests need, or all agents and SDKs. */
export function installAgents(progress?: (line: string) => void, extent?: Extent): Promise<void> {
  return installOwnPackage('agents', progress, extent);
}

export interface ProgramTask {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Files below the home, by path. The program runs in the folder `project`. */
  readonly files?: Readonly<Record<string, string | Buffer>>;
  /** A file below the home that the program writes. */
  readonly leaves?: string | undefined;
  /** The time after which the program is killed. */
  readonly withinMs?: number;
}

export interface ProgramEnd {
  /** Null if it was killed. */
  readonly code: number | null;
  readonly output: string;
  readonly lines: readonly string[];
  /** The text of the file that the program wrote. */
  readonly left?: string | undefined;
}

/** Runs a program once, without a terminal, in an empty home and with no network but loopback. */
export async function runInEmptyHome({
  program,
  args,
  env,
  files = {},
  leaves,
  withinMs,
}: ProgramTask): Promise<ProgramEnd> {
  const home = await mkdtemp(join(tmpdir(), 'tollgate-agent-'));
  const cwd = join(home, 'project');
  try {
    await mkdir(cwd);
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(home, path)), { recursive: true });
      await writeFile(join(home, path), content);
    }
    const end = await run(program, args, {
      cwd,
      env: { PATH: process.env['PATH'], HOME: home, ...LOOPBACK_ONLY, ...env },
      ...(withinMs === undefined ? {} : { withinMs }),
    });
    if (leaves === undefined) return end;
    return { ...end, left: await readFile(join(home, leaves), 'utf8').catch(() => undefined) };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** The proxy for all addresses but loopback: a port that refuses connections. */
const REFUSING = 'http://127.0.0.1:9';
const LOOPBACK_ONLY = { HTTP_PROXY: REFUSING, HTTPS_PROXY: REFUSING, NO_PROXY: '127.0.0.1' };

/** Switches telemetry and updates off. */
export const CLAUDE_CODE_QUIET = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  DISABLE_ERROR_REPORTING: '1',
  DISABLE_TELEMETRY: '1',
};

/** The members of Claude Code's final report (`--output-format json`) that tests read. */
interface AgentReport {
  readonly subtype: string;
  readonly is_error: boolean;
  readonly result: string;
  readonly num_turns: number;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
}

export interface AgentTask {
  /** The address for the agent's calls: the gateway, optionally with a strategy's prefix. */
  readonly baseUrl: string;
  readonly prompt: string;
  /** The agent's credentials and model, by the names of its own environment variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** Files in the working folder, by name. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Runs Claude Code once and returns its report. */
export async function runClaudeCode({ baseUrl, prompt, env, args = [], files = {} }: AgentTask): Promise<AgentReport> {
  const { code, output, lines } = await runInEmptyHome({
    program: platformProgram('@anthropic-ai/claude-code', 'claude'),
    args: ['--print', prompt, '--output-format', 'json', ...args],
    env: { ...CLAUDE_CODE_QUIET, ANTHROPIC_BASE_URL: baseUrl, ...env },
    files: Object.fromEntries(Object.entries(files).map(([name, text]) => [`project/${name}`, text])),
  });
  const report = lines.find((line) => line.startsWith('{'));
  if (report === undefined) throw new Error(`Claude Code ended with ${code} and no report:\n${output}`);
  return JSON.parse(report) as AgentReport;
}

/** Returns the path of a file in the package that npm installed for this platform. */
export function platformProgram(name: string, path: string): string {
  return join(AGENT_PACKAGES, `${name}-${process.platform}-${process.arch}`, path);
}

interface RunOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly withinMs?: number;
}

/** Runs a program to its end and returns what it printed. A program that hangs ends with the process that started it. */
function run(program: string, args: readonly string[], { cwd, env, withinMs }: RunOptions) {
  return new Promise<ProgramEnd>((done, failed) => {
    // Uses a process group, so that its child processes end with it.
    const child = spawn(program, args, {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const end = () => {
      if (child.pid !== undefined) killGroup(child.pid);
    };
    process.once('exit', end);
    const timer = withinMs === undefined ? undefined : setTimeout(end, withinMs);
    const lines: string[] = [];
    for (const input of [child.stdout, child.stderr]) {
      createInterface({ input }).on('line', (line) => lines.push(line));
    }
    child.once('error', failed);
    child.once('close', (code) => {
      clearTimeout(timer);
      process.off('exit', end);
      end();
      done({ code, output: lines.join('\n'), lines });
    });
  });
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The whole group has already ended.
  }
}
