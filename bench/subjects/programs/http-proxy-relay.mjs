/** http-proxy as its documentation shows it, with connections to the upstream kept. */
import { Agent, createServer } from 'node:http';
import httpProxy from 'http-proxy';
import { listen } from './announce.mjs';

const proxy = httpProxy.createProxyServer({
  target: process.env.UPSTREAM_URL,
  agent: new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, maxFreeSockets: 256 }),
});
proxy.on('error', (error, _request, response) => {
  if (!response.headersSent) response.writeHead?.(502);
  response.end(String(error));
});
// It does not pass on that a caller has left.
proxy.on('proxyReq', (upstreamRequest, _request, response) => response.on('close', () => upstreamRequest.destroy()));

listen(createServer((request, response) => proxy.web(request, response)));
