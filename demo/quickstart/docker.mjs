import { existsSync } from 'node:fs';
import { request } from 'node:http';

export const DOCKER_SOCKET = '/var/run/docker.sock';
const IMAGE = 'busybox';
const FETCHED_WITHIN_MS = 60_000;

/** Returns the image for sandboxes at this machine's Docker engine and pulls it if it is missing; undefined without an engine. */
export async function findDockerImage({ DOCKER_SOCKET: socket = DOCKER_SOCKET }, say) {
  if (!existsSync(socket)) return undefined;
  try {
    if ((await ask(socket, 'GET', `/images/${IMAGE}/json`)) === 200) return IMAGE;
    say(`Fetching the Docker image ${IMAGE} …`);
    await ask(socket, 'POST', `/images/create?fromImage=${IMAGE}&tag=latest`);
    if ((await ask(socket, 'GET', `/images/${IMAGE}/json`)) === 200) return IMAGE;
    say(`No Docker sandboxes: the image ${IMAGE} could not be fetched.`);
  } catch (error) {
    say(`No Docker sandboxes: the engine at ${socket} cannot be used (${error.message}).`);
  }
  return undefined;
}

/** Returns the status once the whole answer is read. */
function ask(socketPath, method, path) {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(FETCHED_WITHIN_MS);
    const asked = request({ socketPath, method, path, agent: false, signal }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode));
    });
    asked.once('error', reject);
    asked.end();
  });
}
