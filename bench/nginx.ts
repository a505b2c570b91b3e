/** Starts nginx from its Debian package in the foreground, with a configuration and a folder of its own. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../test/support/free-port';
import { findProgram } from '../test/support/programs';
import { until } from '../test/support/until';
import { CHAT_ANSWER, MESSAGES_ANSWER, RESPONSES_ANSWER } from './bodies';
import type { Rig } from './rig';

export interface Nginx {
  readonly url: string;
  readonly pid: number;
}

export interface UpstreamNginx extends Nginx {
  /** Returns the number of requests so far, including the request that reads the counter. */
  requests(): Promise<number>;
}

const ANSWERS = {
  '/v1/chat/completions': CHAT_ANSWER,
  '/v1/messages': MESSAGES_ANSWER,
  '/v1/responses': RESPONSES_ANSWER,
};

/**
 * Starts the upstream of the JSON scenarios: a static answer per protocol after `delayMs`, so that the upstream is never the bottleneck.
 * nginx can delay only a 401. A delayed call therefore lacks a password, and nginx replaces its 401 by the answer.
 * @param readsBodies whether a proxy in front of the answers first reads each body completely
 */
export async function startUpstreamNginx(rig: Rig, delayMs = 0, readsBodies = false): Promise<UpstreamNginx> {
  const answerAt = ([path, answer]: [string, string], index: number) =>
    delayMs === 0
      ? `location = ${path} { return 200 '${answer}'; }`
      : `location = ${path} {
      auth_basic delayed; auth_basic_user_file /dev/null; auth_delay ${delayMs}ms; error_page 401 =200 @answer${index};
    }
    location @answer${index} { return 200 '${answer}'; }`;
  const answers = (listen: string) => `
  server {
    listen ${listen};
    default_type application/json;
    ${Object.entries(ANSWERS).map(answerAt).join('\n    ')}
    location = /status { stub_status; }
  }`;
  const socket = `unix:${rig.path('answers.socket')}`;
  const reader = (listen: string) => `
  upstream answers { server ${socket}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen ${listen};
    client_body_buffer_size 1m;
    location / {
      proxy_pass http://answers;
      proxy_http_version 1.1;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header Connection "";
    }
  }`;
  const nginx = await startNginx(rig, (port) => {
    const listen = `127.0.0.1:${port} backlog=4096`;
    return readsBodies ? reader(listen) + answers(socket) : answers(listen);
  });
  return { ...nginx, requests: () => readRequests(nginx.url) };
}

/** Starts nginx as a reverse proxy, so that others can be compared with a proxy in C. It keeps connections to the upstream alive. */
export function startProxyNginx(rig: Rig, upstreamUrl: string): Promise<Nginx> {
  return startNginx(
    rig,
    (port) => `
  upstream answers { server ${new URL(upstreamUrl).host}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://answers;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 300s;
    }
    location = /status { stub_status; }
  }`,
  );
}

async function startNginx(rig: Rig, servers: (port: number) => string): Promise<Nginx> {
  const program = findProgram('nginx');
  const [folder, port] = await Promise.all([rig.newFolder('nginx'), freePort()]);
  const file = join(folder, 'nginx.conf');
  await writeFile(file, configuration(folder, servers(port)));
  const nginx = await rig.spawn('nginx', program, ['-p', folder, '-e', 'stderr', '-c', file]);
  const url = `http://127.0.0.1:${port}`;
  await until('nginx answers', async () => {
    if (nginx.child.exitCode !== null) return nginx.message('nothing');
    return (await fetch(`${url}/status`)).ok;
  });
  return { url, pid: nginx.pid };
}

function configuration(folder: string, servers: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
error_log /dev/null crit;
pid ${folder}/nginx.pid;
events { worker_connections 8192; }
http {
  access_log off;
  keepalive_timeout 300s;
  keepalive_requests 1000000000;
  client_max_body_size 0;
  ${temporary.map((each) => `${each}_temp_path ${folder}/${each};`).join('\n  ')}
${servers}
}
`;
}

async function readRequests(url: string): Promise<number> {
  const text = await (await fetch(`${url}/status`)).text();
  const [, requests] = /^\s*\d+ \d+ (\d+)/m.exec(text) ?? [];
  if (requests === undefined) throw new Error(`the status page of nginx has no count of requests: ${text}`);
  return Number(requests);
}
