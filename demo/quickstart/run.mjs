import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findOrMakeAccount } from './account.mjs';
import { checkCalls } from './check.mjs';
import { startChild } from './child.mjs';
import { guide } from './guide.mjs';
import { findDockerImage, prepare } from './prepare.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PORTS = { PORT: '8080', ADMIN_PORT: '9876', DEMO_PORT: '8089' };
const WORDS = ['--check', '--json', '--help', '-h'];
const EXIT_USAGE = 2;

const USAGE = `npm run quickstart [-- options]

Installs and builds what is missing, starts the gateway and a demo upstream on this machine, makes an account with
USD 5.00 and an API key, and shows how to call it, how to use a sandbox, and a link that signs in to the console. Ctrl-C
ends it; what was made is found again at the next start.

  --check   make one call in one piece and one streamed call, show the result, and end with 0 or 1
  --json    print one line of JSON for programs: {url, adminUrl, key, accountId, signInLink, dataDir}
  --help    print this

Environment: PORT (8080), ADMIN_PORT (9876), DEMO_PORT (8089), DATA_DIR (./.tollgate), ADMIN_TOKEN, DOCKER_SOCKET
(/var/run/docker.sock; where it is, there are sandboxes of that engine too), LOG_LEVEL (shows the log). With
ANTHROPIC_API_KEY or OPENAI_API_KEY set, those upstreams are live too.`;

/** Prints progress to standard error, so that standard output has only results worth keeping. */
const say = (line) => console.error(line);

/** Runs until it is stopped, and returns the exit status. */
export async function runQuickstart(words, env) {
  const ports = Object.fromEntries(Object.entries(PORTS).map(([name, usual]) => [name, env[name] || usual]));
  const wrong = wrongIn(words, ports);
  if (wrong !== undefined) {
    say(`${wrong}\n\n${USAGE}`);
    return EXIT_USAGE;
  }
  if (words.includes('--help') || words.includes('-h')) {
    console.log(USAGE);
    return 0;
  }
  const children = [];
  // The first signal stops the programs, the second one kills them.
  const stopped = new Promise((done) => {
    let isStopping = false;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
      process.on(signal, () => {
        if (isStopping) for (const child of children) child.kill();
        isStopping = true;
        done(0);
      });
    }
  });
  try {
    await refuseTakenPorts(ports);
    await prepare(ROOT, say);
    const dataDir = resolve(ROOT, env.DATA_DIR || '.tollgate');
    const childEnv = {
      LOG_LEVEL: 'warn',
      DEMO_SANDBOXES: 'true',
      ...(await dockerSandboxes(env)),
      DEMO_UPSTREAM_KEY: randomBytes(24).toString('hex'),
      ...env,
      ...ports,
      HOST: '127.0.0.1',
      DATA_DIR: dataDir,
    };
    say('Starting the demo upstream and the gateway …');
    const start = (name, script, show) => {
      const child = startChild(name, join(ROOT, script), { root: ROOT, env: childEnv, show });
      children.push(child);
      return child.died;
    };
    const died = [
      start('The demo upstream', 'dist/demo/upstream.js', false),
      start('The gateway', 'dist/server.js', env.LOG_LEVEL !== undefined),
    ];
    // Ends with the first of these: a signal, a child that exits by itself, or the end of the work.
    return await Promise.race([stopped, ...died, work({ words, env, ports, dataDir }, stopped)]);
  } catch (error) {
    say(error.message);
    return 1;
  } finally {
    // Stops the gateway first, because its running calls need the upstream.
    for (const child of children.reverse()) await child.stop();
  }
}

function wrongIn(words, ports) {
  const unknown = words.find((word) => !WORDS.includes(word));
  if (unknown !== undefined) return `There is no option ${unknown}.`;
  const isPort = (port) => /^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535;
  const [name, port] = Object.entries(ports).find(([, each]) => !isPort(each)) ?? [];
  return name === undefined ? undefined : `${name} is "${port}"; it must be a number from 1 to 65535.`;
}

/** Fails with one sentence for each port in use, with the variable that changes it. */
async function refuseTakenPorts(ports) {
  const sentences = [];
  const seen = new Map();
  for (const [name, port] of Object.entries(ports)) {
    if (seen.has(port)) sentences.push(`${name} and ${seen.get(port)} are both ${port}; give them different numbers.`);
    else if (!(await isFree(Number(port)))) {
      const other = `${name}=${Number(port) + 100}`;
      sentences.push(`Port ${port} is taken. Set ${name} to another one: ${other} npm run quickstart`);
    }
    seen.set(port, name);
  }
  if (sentences.length > 0) throw new Error(sentences.join('\n'));
}

function isFree(port) {
  return new Promise((done) => {
    const server = createServer();
    server.once('error', () => done(false));
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
  });
}

async function dockerSandboxes(env) {
  const image = await findDockerImage(env, say);
  return image === undefined ? {} : { DEMO_DOCKER_SANDBOXES: 'true', DEMO_DOCKER_IMAGE: image };
}

/** Makes the account, and shows what to do with it. Returns the exit status. */
async function work({ words, env, ports, dataDir }, stopped) {
  const url = `http://127.0.0.1:${ports.PORT}`;
  const adminUrl = `http://127.0.0.1:${ports.ADMIN_PORT}`;
  await untilReady('the demo upstream', `http://127.0.0.1:${ports.DEMO_PORT}/healthz`);
  await untilReady('the gateway', `${url}/readyz`);
  const account = await findOrMakeAccount({ url, adminUrl, dataDir, adminToken: env.ADMIN_TOKEN });
  const { accountId, key, link: signInLink } = account;
  if (words.includes('--json')) console.log(JSON.stringify({ url, adminUrl, key, accountId, signInLink, dataDir }));
  else if (!words.includes('--check')) console.log(guide({ url, adminUrl, account, env }));
  return words.includes('--check') ? checkCalls({ url, key }, say) : stopped;
}

const READY_WITHIN_MS = 60_000;
const ASK_EVERY_MS = 100;
const SAY_EVERY_MS = 2_000;

/** Waits until the address answers 200, and prints now and then what it waits for. */
async function untilReady(name, url) {
  const began = Date.now();
  let said = began;
  for (;;) {
    const answer = await statusOf(url);
    if (answer === 200) return;
    const now = Date.now();
    if (now - began > READY_WITHIN_MS)
      throw new Error(`${name} was not ready within ${READY_WITHIN_MS / 1000} s (${url}: ${answer}).`);
    if (now - said >= SAY_EVERY_MS) {
      say(`  waiting for ${name} (${Math.round((now - began) / 1000)} s, ${answer}) …`);
      said = now;
    }
    await sleep(ASK_EVERY_MS);
  }
}

async function statusOf(url) {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return 'no answer yet';
  }
}
