import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:net';
import {
  AddressRefused,
  classifyDialFailure,
  nothingWasSent,
  openEgress,
  type Resolve,
} from '../../../core/wire/egress';
import { privateRange } from '../../../core/wire/guarded-connector';
import { destination } from '../../support/destination';

const LOOPBACK_SPELLINGS = [
  '127.0.0.1',
  '127.0.0.1.',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f.1',
  '0x7f000001',
  '0177.0.0.1',
  '017700000001',
  '%31%32%37.0.0.1',
  '127.0.0.1',
  '127。0。0。1',
  '0.0.0.0',
  '0',
  '[::1]',
  '[::]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  'localhost',
  'LOCALHOST',
];

const PRIVATE = [
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  '100.100.100.200',
  '169.254.169.254',
  '168.63.129.16',
  '192.0.0.170',
  '192.0.2.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '0.1.2.3',
  'fe80::1',
  'fe80::1%lo',
  'fc00::1',
  'fd00:ec2::254',
  'fec0::1',
  'ff02::1',
  '100::1',
  '2001::1',
  '2001:2::1',
  '2001:db8::1',
  '3fff::1',
  '5f00::1',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::808:808',
  '::ffff:10.0.0.1',
  '::ffff:0:8.8.8.8',
  '::8.8.8.8',
  '4000::1',
  'no address',
];

const PUBLIC = ['8.8.8.8', '1.1.1.1', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8', '64:ff9b::808:808'];

/** A global unicast address that was never assigned: no packet arrives anywhere. */
const UNREACHABLE = '2000::1';

describe('the addresses that egress connects to', () => {
  let server: Server;
  let port: number;
  let connections: number;

  before((done) => {
    server = createServer((socket) => {
      connections += 1;
      socket.resume();
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok');
    });
    // Listens on every family and address of this machine, so that a connection to any spelling would be counted.
    server.listen(0, '::', () => {
      const address = server.address();
      port = typeof address === 'object' && address !== null ? address.port : 0;
      done();
    });
  });
  beforeEach(() => {
    connections = 0;
  });
  after((done) => {
    server.close(() => done());
  });

  for (const address of PRIVATE) {
    it(`do not include ${address}, which is not public`, () => assert.equal(typeof privateRange(address), 'string'));
  }
  for (const address of PUBLIC) {
    it(`include ${address}, which is public`, () => assert.equal(privateRange(address), undefined));
  }

  for (const host of LOOPBACK_SPELLINGS) {
    it(`do not include http://${host}, for which no connection is opened`, async () => {
      const error = await failureOf(`http://${host}:${port}`);
      assert.ok(error instanceof AddressRefused);
      assert.equal(connections, 0);
    });
  }

  it('exclude loopback even if the host name ends with a dot', async () => {
    // Systems differ in whether they resolve `localhost.`; egress must connect on none of them.
    const error = await failureOf(`http://localhost.:${port}`);
    assert.equal(classifyDialFailure(error), 'connect_failed');
    assert.equal(connections, 0);
  });

  it('cause an error with host and address, but no credential, if they are refused; another upstream may be tried', async () => {
    const error = await failureOf(`http://someone:secret@127.1:${port}`);
    assert.ok(error instanceof AddressRefused);
    const { code, host, address, range } = error;
    assert.deepEqual([code, host, address, range], ['ADDRESS_REFUSED', '127.0.0.1', '127.0.0.1', 'loopback']);
    assert.ok(!String(error).includes('secret'));
    assert.equal(classifyDialFailure(error), 'connect_failed');
    assert.equal(nothingWasSent(error), true);
  });

  it('include private ones for an upstream with allowPrivate, given as an address or as a name', async () => {
    const egress = openEgress();
    for (const host of ['127.0.0.1', '127.1', '[::1]', 'localhost']) {
      const there = destination(`http://${host}:${port}`, { allowPrivate: true });
      const answer = await egress.pool(there).request({ method: 'GET', path: '/' });
      assert.equal(await answer.body.text(), 'ok');
    }
    assert.equal(connections, 4);
    await egress.close();
  });

  it('include no address of a host name that has both a public and a private address', async () => {
    const asked: string[] = [];
    const resolve = answering(asked, [['8.8.8.8', '127.0.0.1']]);
    const error = await failureOf(`http://both.example:${port}`, resolve);
    assert.ok(error instanceof AddressRefused);
    assert.equal(connections, 0);
    assert.deepEqual(asked, ['both.example']);
  });

  it('are resolved once per connection, and no second DNS answer is used', async () => {
    const asked: string[] = [];
    // The resolver answers with the public address first and loopback from then on.
    const resolve = answering(asked, [[UNREACHABLE], ['127.0.0.1']]);
    const error = await failureOf(`http://rebinding.example:${port}`, resolve, 200);
    assert.ok(!(error instanceof AddressRefused));
    assert.deepEqual(asked, ['rebinding.example']);
    assert.equal(connections, 0);
  });

  it('are the same that were checked before', async () => {
    const asked: string[] = [];
    const egress = openEgress({ resolve: answering(asked, [['127.0.0.1']]) });
    const there = destination(`http://named.example:${port}`, { allowPrivate: true });
    const answer = await egress.pool(there).request({ method: 'GET', path: '/' });
    assert.equal(await answer.body.text(), 'ok');
    assert.deepEqual(asked, ['named.example']);
    await egress.close();
  });
});

/** Makes a resolver that returns these answers one after the other and then repeats the last. */
function answering(asked: string[], answers: readonly (readonly string[])[]): Resolve {
  return (host, done) => {
    const addresses = answers[Math.min(asked.length, answers.length - 1)] ?? [];
    asked.push(host);
    queueMicrotask(() =>
      done(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      ),
    );
  };
}

async function failureOf(url: string, resolve?: Resolve, connectMs = 5_000): Promise<unknown> {
  const egress = openEgress(resolve === undefined ? {} : { resolve });
  const error = await rejection(egress.pool(destination(url, { connectMs })).request({ method: 'GET', path: '/' }));
  await egress.close();
  return error;
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it was answered');
}
