import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { limitConnections } from '../../../core/http/connection-limits';
import { Certificates, serveWithTls } from '../../../core/serving/tls';
import { newAuthority } from '../../support/certificates';
import { temporaryFolder } from '../../support/configuration-folder';
import { quiet } from '../../support/databases';

describe('A server with TLS', () => {
  it('counts a connection against its limit from before the TLS handshake until it is closed', async () => {
    const folder = temporaryFolder({});
    const own = await (await newAuthority(folder)).issue('own', ['127.0.0.1']);
    const server = createServer((_, response) => response.end());
    serveWithTls(server, new Certificates('https.tls', { default: own }, folder));
    limitConnections(server, { max: 1, maxPerAddress: 1 }, { isProxy: () => false }, quiet);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    for (let turn = 0; turn < 2; turn += 1) {
      const left = new Promise((done) => server.once('connection', (socket) => socket.once('close', done)));
      const silent = connect(port, '127.0.0.1');
      await once(server, 'connection');
      const refused = connect(port, '127.0.0.1')
        .resume()
        .on('error', () => undefined);
      await once(refused, 'close');
      assert.equal(silent.destroyed, false);
      silent.destroy();
      await left;
    }
    server.close();
  });
});
