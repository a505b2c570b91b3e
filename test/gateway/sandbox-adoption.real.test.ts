import { expect } from 'chai';
import { request } from 'undici';
import { newDataFolder } from '../support/data-folder';
import { startGateway, type TestGateway } from '../support/gateway';
import { findProgram } from '../support/programs';
import { createSandbox, creation, NODE_INSIDE, SANDBOX_GATEWAY, terminate, waitForState } from '../support/sandboxes';
import { realStores } from '../support/stores';
import { until } from '../support/until';

const PORT = 28_911;

describe('A sandbox of the process driver whose gateway is killed', function () {
  this.timeout(120_000);
  let gateway: TestGateway;

  after(() => gateway?.stop());

  it('keeps its files and server, and the next gateway can use and terminate it', async () => {
    findProgram('bwrap');
    const stores = await realStores();
    const dataFolder = await newDataFolder();
    const start = () => startGateway({ ...SANDBOX_GATEWAY, stores, dataFolder });
    gateway = await start();
    const { key } = await gateway.newCustomer('5');
    const { id } = await createSandbox(gateway, key, creation('adopted'));
    await waitForState(gateway, key, id, 'RUNNING');
    const post = (path: string, body: unknown) => gateway.call(`/v1/sandboxes/${id}${path}`, { key, body });
    await post('/files', { path: '/data/kept', content: 'kept' });
    const server = `require('http').createServer((q, a) => a.end('served')).listen(${PORT}, '127.0.0.1')`;
    await post('/commands', { command: `exec "${NODE_INSIDE}" -e "${server}"`, background: true });
    const ask = async () => {
      const opened = (await gateway.call(`/v1/sandboxes/${id}/ports/${PORT}`, { method: 'GET', key })).json;
      return (await request(opened.url, { headers: opened.headers })).body.text();
    };
    await until('the server answers', async () => (await ask()) === 'served');
    await gateway.kill();
    gateway = await start();
    expect((await post('/commands', { command: 'cat /data/kept' })).json.stdout).to.equal('kept');
    expect(await ask()).to.equal('served');
    expect((await terminate(gateway, key, id)).observedState).to.equal('TERMINATED');
  });
});
