import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { installOwnPackage } from './own-packages';

/** The package of its own that names the agents, with their versions. */
const AGENTS = resolve(__dirname, '../agents');
const PROGRAMS = join(AGENTS, 'node_modules/@anthropic-ai');

/** Installs the agents where they are missing or of other versions. */
export function installAgents(progress?: (line: string) => void): Promise<void> {
  return installOwnPackage('agents', progress);
}

export interface AgentTask {
  /** Where the agent sends its calls: the gateway, perhaps with a strategy's prefix. */
  readonly baseUrl: string;
  readonly prompt: string;
  /** The agent's credentials and model, by the names of its own environment variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** Files in the folder it works in: name and text. */
  readonly files?: Readonly<Record<string, string>>;
}

/** What Claude Code reports at its end (`--output-format json`), as far as tests read it. */
export interface AgentReport {
  readonly subtype: string;
  readonly is_error: boolean;
  readonly result: string;
  readonly num_turns: number;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
}

/** Runs Claude Code once, without a terminal, in an empty home, and returns its report. */
export async function runClaudeCode({ baseUrl, prompt, env, args = [], files = {} }: AgentTask): Promise<AgentReport> {
  const home = await mkdtemp(join(tmpdir(), 'tollgate-agent-'));
  const folder = join(home, 'project');
  try {
    await mkdir(folder);
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const { code, output, lines } = await run(
      await claudeCode(),
      ['--print', prompt, '--output-format', 'json', ...args],
      {
        cwd: folder,
        env: { PATH: process.env['PATH'], HOME: home, ...ISOLATED, ANTHROPIC_BASE_URL: baseUrl, ...env },
      },
    );
    const report = lines.find((line) => line.startsWith('{'));
    if (report === undefined) throw new Error(`Claude Code ended with ${code} and no report:\n${output}`);
    return JSON.parse(report) as AgentReport;
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** A port that refuses: the agent's proxy for all addresses but loopback. */
const REFUSING = 'http://127.0.0.1:9';

/** No telemetry, no updates, and no network but loopback. */
const ISOLATED = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  DISABLE_ERROR_REPORTING: '1',
  DISABLE_TELEMETRY: '1',
  HTTP_PROXY: REFUSING,
  HTTPS_PROXY: REFUSING,
  NO_PROXY: '127.0.0.1',
};

/** The path of the program: npm installs the one package that fits this machine. */
async function claudeCode(): Promise<string> {
  const name = (await readdir(PROGRAMS)).find((each) => each.startsWith('claude-code-'));
  if (name === undefined) throw new Error('Claude Code has no program for this machine');
  return join(PROGRAMS, name, 'claude');
}

interface RunOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly onLine?: (line: string) => void;
}

/** Runs a program to its end and returns what it printed. A program that hangs ends with the process that started it. */
function run(program: string, args: readonly string[], { cwd, env, onLine }: RunOptions) {
  return new Promise<{ code: number | null; output: string; lines: readonly string[] }>((done, failed) => {
    const child = spawn(program, args, { cwd, env: env ?? process.env, stdio: ['ignore', 'pipe', 'pipe'] });
    const endWithUs = () => child.kill('SIGKILL');
    process.once('exit', endWithUs);
    const lines: string[] = [];
    for (const input of [child.stdout, child.stderr]) {
      createInterface({ input }).on('line', (line) => {
        lines.push(line);
        onLine?.(line);
      });
    }
    child.once('error', failed);
    child.once('close', (code) => {
      process.off('exit', endWithUs);
      done({ code, output: lines.join('\n'), lines });
    });
  });
}
