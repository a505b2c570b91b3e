import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { expect } from 'chai';
import { pino } from 'pino';
import { Pool } from 'undici';
import { toGatewayError } from '../../../../core/api/thrown';
import { sendError } from '../../../../core/http/http';
import { openEgress } from '../../../../core/wire/egress';
import { type Passage, PortProxy } from '../../../../plugins/sandbox/ports/port-proxy';

const REFUSED = '502 SUPPLIER_ERROR';

describe('a port proxy', function () {
  this.timeout(60_000);
  let bytes = '';
  let instance: Server;
  let gateway: HttpServer;
  let client: Pool;
  const egress = openEgress();

  before(async () => {
    instance = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end(Buffer.from(bytes, 'latin1')));
    });
    const proxy = new PortProxy({} as never, pino({ enabled: false }), () => false, egress);
    gateway = createHttpServer((request, response) => {
      proxy.pass(request, response, passage()).catch((error: unknown) => {
        sendError(request, response, toGatewayError(error), 'req_test');
      });
    });
    for (const server of [instance, gateway]) await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    client = new Pool(`http://127.0.0.1:${portOf(gateway)}`, { headersTimeout: 10_000, bodyTimeout: 10_000 });
  });

  after(async () => {
    await client.destroy();
    for (const server of [instance, gateway]) server.close();
  });

  const portOf = (server: Server) => (server.address() as AddressInfo).port;

  const passage = (): Passage => ({
    address: { host: '127.0.0.1', port: portOf(instance), headers: {} },
    path: '/',
    tokenHash: '',
    sandboxId: '',
    headers: {},
  });

  const answerTo = async (said: string): Promise<string> => {
    bytes = said;
    const { statusCode, body } = await client.request({ method: 'GET', path: '/' });
    const text = await body.text();
    return text.startsWith('{') ? `${statusCode} ${JSON.parse(text).error.code}` : String(statusCode);
  };

  const answersTo = async (all: readonly string[]): Promise<readonly string[]> => {
    const answers: string[] = [];
    for (const said of all) answers.push(await answerTo(said));
    return answers;
  };

  it('relays every status from 200 to 599 and refuses every other', async () => {
    const statuses = Array.from({ length: 1_000 }, (_, status) => status);
    const answers = await answersTo(
      statuses.map((status) => `HTTP/1.1 ${String(status).padStart(3, '0')} Said\r\ncontent-length: 0\r\n\r\n`),
    );
    expect(answers).to.deep.equal(statuses.map((status) => (status >= 200 && status < 600 ? String(status) : REFUSED)));
  });

  for (const [where, sayWith] of [
    ['reason phrase', (byte: string) => `HTTP/1.1 200 O${byte}K\r\ncontent-length: 0\r\n\r\n`],
    ['header name', (byte: string) => `HTTP/1.1 200 OK\r\nx-a${byte}b: c\r\ncontent-length: 0\r\n\r\n`],
    ['header value', (byte: string) => `HTTP/1.1 200 OK\r\nx-a: b${byte}c\r\ncontent-length: 0\r\n\r\n`],
    ['location', (byte: string) => `HTTP/1.1 200 OK\r\nlocation: /b${byte}c\r\ncontent-length: 0\r\n\r\n`],
  ] as const) {
    it(`relays or refuses an answer, whatever byte its ${where} has`, async () => {
      const all = Array.from({ length: 256 }, (_, byte) => sayWith(String.fromCharCode(byte)));
      expect(new Set(await answersTo(all))).to.deep.equal(new Set(['200', REFUSED]));
    });
  }

  for (const [title, said, expected] of [
    ['announced trailers', 'HTTP/1.1 200 OK\r\ntrailer: x-a\r\ncontent-length: 2\r\n\r\nok', '200'],
    ['a 204 with a body', 'HTTP/1.1 204 No Content\r\ntrailer: x-a\r\ncontent-length: 2\r\n\r\nok', '204'],
    ['a 304 with a body', 'HTTP/1.1 304 Not Modified\r\ncontent-length: 2\r\n\r\nok', '304'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok', REFUSED],
    ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n', REFUSED],
    ['interim answers alone', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(10_000), REFUSED],
    [
      'interim answers before its answer',
      `${'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n'.repeat(10_000)}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`,
      '200',
    ],
    ['nothing', '', REFUSED],
    ['what is not HTTP', 'nonsense\r\n\r\n', REFUSED],
  ] as const) {
    it(`answers ${expected} to an instance that sends ${title}`, async () => {
      expect(await answerTo(said)).to.equal(expected);
    });
  }
});
