import { isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export const USAGE = `npm run quickstart [-- options]

Installs and builds what is missing, starts the gateway and a demo upstream on this machine, makes an account with
USD 5.00 and an API key, and shows how to call it, how to use a sandbox, and a link that signs in to the console. Ctrl-C
ends it; what was made is found again at the next start.

  --check   make one call in one piece and one streamed call, show the result, and end with 0 or 1
  --json    print one line of JSON for programs: {url, adminUrl, key, accountId, signInLink, dataDir}
  --help    print this

Environment: PORT (8080), ADMIN_PORT (9876), DEMO_PORT (8089), DATA_DIR (./.tollgate), ADMIN_TOKEN, DOCKER_SOCKET
(/var/run/docker.sock; where it is, there are sandboxes of that engine too), LOG_LEVEL (shows the log). With
ANTHROPIC_API_KEY or OPENAI_API_KEY set, those upstreams are live too.`;

/** Reads the options from the command line and the environment. `wrong` has the reason if they are wrong. */
export function readOptions(words, env) {
  const unknown = words.find((word) => !['--check', '--json', '--help', '-h'].includes(word));
  if (unknown !== undefined) return { wrong: `There is no option ${unknown}.` };
  const ports = { PORT: env.PORT || '8080', ADMIN_PORT: env.ADMIN_PORT || '9876', DEMO_PORT: env.DEMO_PORT || '8089' };
  for (const [name, port] of Object.entries(ports)) {
    if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535) {
      return { wrong: `${name} is "${port}"; it must be a number from 1 to 65535.` };
    }
  }
  const dataDir = env.DATA_DIR || '.tollgate';
  return {
    help: words.includes('--help') || words.includes('-h'),
    check: words.includes('--check'),
    json: words.includes('--json'),
    root: ROOT,
    ports,
    dataDir: isAbsolute(dataDir) ? dataDir : join(ROOT, dataDir),
    env,
  };
}
