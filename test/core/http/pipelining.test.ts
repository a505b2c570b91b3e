import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { limitPipelining } from '../../../core/http/pipelining';
import { until } from '../../support/until';

/** Fits into one read. */
const PIPELINED = 1_000;
const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`;

describe('Pipelined requests', () => {
  let server: Server;
  let sockets: Socket[];
  let begun: string[];
  let answer: (request: IncomingMessage) => string;

  beforeEach(async () => {
    [begun, sockets, answer] = [[], [], ({ url }) => `${url}`];
    server = createServer((request, response) => {
      begun.push(`${request.url}`);
      response.end(answer(request));
    });
    limitPipelining(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  });

  /** A connection that the server has served already. */
  async function open(): Promise<{ readonly socket: Socket; readonly text: () => string }> {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    sockets.push(socket);
    let text = '';
    socket.setEncoding('latin1').on('data', (piece) => {
      text += piece;
    });
    socket.write(get('/first'));
    await until('the first answer', () => text.endsWith('/first'));
    return { socket, text: () => text };
  }

  it('on one connection do not delay requests on another connection', async () => {
    const [flood, other] = [await open(), await open()];
    flood.socket.write(get('/flood').repeat(PIPELINED));
    other.socket.write(get('/other'));
    await until('all are answered', () => begun.length === PIPELINED + 3);
    // Those of the flood that are read, and begin, before the event loop comes to the other connection.
    expect(begun.indexOf('/other') - 2).to.be.below(50);
  });

  it('are answered in order, even if more requests arrive than the server reads at once', async () => {
    const { socket, text } = await open();
    const paths = Array.from({ length: 5 * PIPELINED }, (_, at) => `/${at}`);
    socket.write(paths.map(get).join(''));
    await until('all are answered', () => text().endsWith(`/${paths.length - 1}`));
    expect(begun.slice(1)).to.deep.equal(paths);
  });

  it('are not read any further while earlier requests wait for their answers', async () => {
    const { socket } = await open();
    let waited = 0;
    let read = begun.length;
    server.on('request', () => {
      read += 1;
    });
    answer = () => {
      waited = Math.max(waited, read - begun.length);
      return 'x';
    };
    socket.write(get('/').repeat(20 * PIPELINED));
    await until('all are answered', () => begun.length === 20 * PIPELINED + 1);
    // One read of the socket returns up to 64 KiB of requests.
    expect(waited).to.be.within(100, 65_536 / get('/').length + 1);
  });

  it("are dropped when the client's connection closes", async () => {
    const { socket } = await open();
    answer = () => {
      socket.destroy();
      return 'x';
    };
    socket.write(get('/').repeat(PIPELINED));
    await until('the connection is closed', () => socket.closed);
    answer = ({ url }) => `${url}`;
    await open();
    expect(begun.length).to.be.below(PIPELINED / 2);
  });
});
