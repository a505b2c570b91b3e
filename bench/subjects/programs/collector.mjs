/** Takes spans over OTLP/HTTP, reads them to their end, and keeps nothing. */
import { createServer } from 'node:http';
import { listen } from './announce.mjs';

listen(
  createServer((request, response) => {
    request.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{}');
    });
  }),
);
