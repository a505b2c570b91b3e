/** Runs wrk once: it sends POST requests with a body, and counts all errors. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { findProgram } from '../test/support/programs';
import type { Rig } from './rig';

const execute = promisify(execFile);

export interface Load {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The bodies of the calls, drawn at random. */
  readonly bodies: readonly string[];
  /** The API keys that calls with the first body use one after the other. Default: the key in the headers. */
  readonly keys?: readonly string[] | undefined;
  readonly connections: number;
  readonly seconds: number;
}

export interface LoadResult {
  readonly calls: number;
  readonly callsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The error of a run with at least one wrong answer. Its measurements are not used. */
export class LoadFailed extends Error {
  override readonly name = 'LoadFailed';
}

interface WrkSummary {
  readonly requests: number;
  readonly durationUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly connect: number;
  readonly read: number;
  readonly write: number;
  readonly timeout: number;
  readonly status: number;
}

const MARK = 'bench-summary ';

export async function runWrk(rig: Rig, load: Load): Promise<LoadResult> {
  const wrk = findProgram('wrk');
  const scriptFile = rig.path('wrk.lua');
  const keyFile = rig.path('keys');
  if (load.keys !== undefined) await writeFile(keyFile, load.keys.join('\n'));
  await writeFile(scriptFile, luaScript(load, keyFile));
  const args = ['-t1', `-c${load.connections}`, `-d${load.seconds}s`, '--timeout', '10s', '-s', scriptFile, load.url];
  const { stdout } = await execute(wrk, args, { signal: rig.signal });
  const line = stdout.split('\n').find((each) => each.startsWith(MARK));
  if (line === undefined) throw new LoadFailed(`wrk gave no summary: ${stdout.slice(-300)}`);
  return judge(JSON.parse(line.slice(MARK.length)) as WrkSummary);
}

function judge(summary: WrkSummary): LoadResult {
  const { connect, read, write, timeout, status, requests } = summary;
  const wrong = Object.entries({ connect, read, write, timeout, 'status above 399': status }).filter(([, n]) => n > 0);
  if (wrong.length > 0) {
    throw new LoadFailed(`of ${requests} calls: ${wrong.map(([what, n]) => `${what} ${n}`).join(', ')}`);
  }
  if (requests === 0) throw new LoadFailed('not one call was answered');
  return {
    calls: requests,
    callsPerSecond: requests / (summary.durationUs / 1e6),
    p50Ms: summary.p50Us / 1_000,
    p99Ms: summary.p99Us / 1_000,
  };
}

/** Writes wrk's Lua script. Lua's long strings contain JSON unchanged. */
function luaScript({ headers, bodies, keys }: Load, keyFile: string): string {
  const quote = (text: string) => `[==[${text}]==]`;
  const lines = Object.entries(headers).map(([name, value]) => `wrk.headers[ ${quote(name)} ] = ${quote(value)}`);
  // Defines wrk's `request` function only if the calls differ, because running the function for each call takes CPU time from the measured cores.
  const body =
    bodies.length === 1 || keys !== undefined
      ? `wrk.body = ${quote(bodies[0] ?? '')}`
      : `local bodies, requests = { ${bodies.map(quote).join(', ')} }, {}
init = function()
  for at, body in ipairs(bodies) do requests[at] = wrk.format(nil, nil, nil, body) end
end
request = function() return requests[math.random(#requests)] end`;
  const callers = `local made, requests, at = {}, {}, 0
init = function()
  for key in io.lines(${quote(keyFile)}) do
    wrk.headers.authorization = "Bearer " .. key
    made[key] = made[key] or wrk.format()
    requests[#requests + 1] = made[key]
  end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end`;
  return `wrk.method = "POST"
${lines.join('\n')}
${body}
${keys === undefined ? '' : callers}
done = function(summary, latency)
  local e = summary.errors
  print(string.format('${MARK}{"requests":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.connect, e.read, e.write, e.timeout, e.status))
end
`;
}
