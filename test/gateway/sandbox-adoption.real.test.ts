import { expect } from 'chai';
import { newDataFolder } from '../support/data-folder';
import { startGateway, type TestGateway } from '../support/gateway';
import { isRunning } from '../support/instances';
import { findProgram } from '../support/programs';
import { createSandbox, creation, SANDBOX_GATEWAY, terminate, waitForState } from '../support/sandboxes';
import { realStores } from '../support/stores';
import { until } from '../support/until';

describe('A sandbox of the process driver whose gateway is killed', function () {
  this.timeout(120_000);
  let gateway: TestGateway;

  after(() => gateway?.stop());

  it('keeps its files and commands, and the next gateway can use and terminate it', async () => {
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
    const counting = 'n=0; while :; do n=$((n + 1)); echo $n > count; sleep 0.0611; done';
    const { commandId } = (await post('/commands', { command: counting, background: true })).json;
    const count = async () => Number((await post('/commands', { command: 'cat count' })).json.stdout);
    await until('it counts', async () => (await count()) > 0);
    await gateway.kill();
    gateway = await start();
    expect((await post('/commands', { command: 'cat /data/kept' })).json.stdout).to.equal('kept');
    const before = await count();
    await until('it still counts', async () => (await count()) > before);
    await post(`/commands/${commandId}/signal`, { signal: 'SIGKILL' });
    await until('the signal has ended it', async () => !(await isRunning('sleep 0.0611')));
    await post('/commands', { command: 'sleep 6112', background: true });
    await until('another runs', () => isRunning('sleep 6112'));
    expect((await terminate(gateway, key, id)).observedState).to.equal('TERMINATED');
    expect(await isRunning('sleep 6112')).to.equal(false);
  });
});
