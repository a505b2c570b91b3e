import { randomBytes } from 'node:crypto';
import { findOrMakeAccount } from './account.mjs';
import { checkCalls } from './check.mjs';
import { startChild } from './child.mjs';
import { findDockerImage } from './docker.mjs';
import { guide } from './guide.mjs';
import { takenPorts } from './ports.mjs';
import { prepare } from './prepare.mjs';
import { untilReady } from './ready.mjs';

/** Prints progress to standard error, so that standard output has only results worth keeping. */
const say = (line) => console.error(line);

/** Runs until it is stopped, and returns the exit status. */
export async function runQuickstart(options) {
  const { ports, root, env } = options;
  const children = [];
  const stopping = stopSignal();
  try {
    const taken = await takenPorts(ports);
    if (taken.length > 0) throw new Error(taken.join('\n'));
    await prepare(root, say);

    const childEnv = environment(options, await findDockerImage(env, say));
    say('Starting the demo upstream and the gateway …');
    children.push(startChild('The demo upstream', 'dist/demo/upstream.js', { root, env: childEnv, show: false }));
    children.push(
      startChild('The gateway', 'dist/server.js', { root, env: childEnv, show: env.LOG_LEVEL !== undefined }),
    );
    // Ends with the first of these: a signal, a child that exits by itself, or the end of the work.
    const stopped = stopping.promise.then(() => 0);
    const died = Promise.race(children.map((child) => child.died));
    return await Promise.race([stopped, died, work(options, stopped)]);
  } catch (error) {
    say(error.message);
    return 1;
  } finally {
    stopping.onAgain(() => {
      for (const child of children) child.kill();
    });
    // Stops the gateway first, because its running calls need the upstream.
    for (const child of children.reverse()) await child.stop();
  }
}

async function work(options, stopped) {
  const { ports, dataDir, json, check, env } = options;
  const url = `http://127.0.0.1:${ports.PORT}`;
  const adminUrl = `http://127.0.0.1:${ports.ADMIN_PORT}`;
  await untilReady('the demo upstream', `http://127.0.0.1:${ports.DEMO_PORT}/healthz`, say);
  await untilReady('the gateway', `${url}/readyz`, say);
  const account = await findOrMakeAccount({ url, adminUrl, dataDir, adminToken: env.ADMIN_TOKEN });
  if (json) {
    console.log(
      JSON.stringify({
        url,
        adminUrl,
        key: account.key,
        accountId: account.accountId,
        signInLink: account.link,
        dataDir,
      }),
    );
  } else if (!check) {
    console.log(guide({ url, adminUrl, account, env }));
  }
  return check ? checkCalls({ url, key: account.key }, say) : stopped;
}

function environment({ env, ports, dataDir }, dockerImage) {
  return {
    LOG_LEVEL: 'warn',
    DEMO_SANDBOXES: 'true',
    ...(dockerImage === undefined ? {} : { DEMO_DOCKER_SANDBOXES: 'true', DEMO_DOCKER_IMAGE: dockerImage }),
    DEMO_UPSTREAM_KEY: randomBytes(24).toString('hex'),
    ...env,
    ...ports,
    HOST: '127.0.0.1',
    DATA_DIR: dataDir,
  };
}

function stopSignal() {
  let again = () => undefined;
  let asked = false;
  const promise = new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
      process.on(signal, () => {
        if (asked) again();
        asked = true;
        resolve();
      });
    }
  });
  return {
    promise,
    onAgain: (action) => {
      again = action;
    },
  };
}
