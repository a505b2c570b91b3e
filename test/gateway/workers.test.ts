import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { newEmbeddedFolder } from '../support/data-folder';
import { startGateway } from '../support/gateway';

describe('Workers on embedded stores', function () {
  this.timeout(120_000);

  it('are not started: one process serves, and logs the reason', async () => {
    const gateway = await startGateway({
      stores: { dataFolder: await newEmbeddedFolder() },
      upstreams: { acme: { url: 'http://127.0.0.1:1' } },
      env: { WORKERS: '2' },
    });
    expect(gateway.output()).to.include('WORKERS is ignored because the embedded stores serve one process only');
    const children = readFileSync(`/proc/${gateway.pid}/task/${gateway.pid}/children`, 'utf8').split(' ');
    const programs = children.filter(Boolean).map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
    expect(programs.filter((program) => program.includes('server.js'))).to.deep.equal([]);
    expect(await gateway.stop()).to.equal(0);
  });
});
