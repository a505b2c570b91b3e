/** Runs http-proxy as its documentation shows it, with kept connections to the upstream. */
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
// Cancels the upstream request, because http-proxy does not pass on a client's disconnect.
proxy.on('proxyReq', (upstreamRequest, _request, response) => response.on('close', () => upstreamRequest.destroy()));

listen(createServer((request, response) => proxy.web(request, response)));
