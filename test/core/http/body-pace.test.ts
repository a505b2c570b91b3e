import { strict as assert } from 'node:assert';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { GatewayError } from '../../../core/errors';
import { sendError } from '../../../core/http/http';
import { readBody } from '../../../core/http/read-body';

const QUICK = { totalMs: 400, slowMs: 100, minBytesPerSecond: 100, maxBytes: 1_000 };
const UNCOUNTED = { add: () => undefined };

describe("a request body at a route of Tollgate's own API", () => {
  it('is refused when it arrives too slowly, and is read whole otherwise', async () => {
    const server = createServer((request, response) => {
      readBody(request, { limits: QUICK, room: UNCOUNTED }).then(
        (pieces) => response.end(String(Buffer.concat([...pieces]).length)),
        (error: unknown) => {
          if (error instanceof GatewayError) sendError(request, response, error, 'req_1');
          else response.destroy();
        },
      );
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    const ask = async (length: number, sent: number) => {
      const socket = connect(port, '127.0.0.1');
      socket.write(
        `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(sent)}`,
      );
      let answer = '';
      for await (const piece of socket) {
        answer += String(piece);
        // Stop after the answer: the gateway reads the rest of a refused body for a while.
        if (answer.includes('}')) break;
      }
      return answer;
    };
    try {
      assert.match(await ask(500, 500), /^HTTP\/1\.1 200[\s\S]*500$/);
      assert.match(await ask(500, 10), /BODY_TIMEOUT/);
      assert.match(await ask(2_000, 1_500), /BODY_TOO_LARGE/);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }).timeout(20_000);
});
