import { existsSync } from 'node:fs';
import { request } from 'node:http';

export const DOCKER_SOCKET = '/var/run/docker.sock';
const IMAGE = 'busybox';
const FETCHED_WITHIN_MS = 60_000;

/** The image for sandboxes at this machine's Docker engine, fetched when it is missing; undefined when there is no engine. */
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

/** The status, once the whole answer is there. */
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
