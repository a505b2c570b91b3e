import { expect } from 'chai';
import { failToStart, startGateway } from '../support/gateway';
import { SMALL } from '../support/sandboxes';

const UNISOLATED = {
  upstreams: { none: { url: 'http://127.0.0.1:9' } },
  plugins: { sandbox: { suppliers: { local: { driver: 'process', isolation: 'none' } } } },
  configure: (config: Record<string, unknown>) => {
    config['offerings'] = { small: SMALL };
  },
};

describe('A gateway on loopback that offers sandboxes without isolation', function () {
  this.timeout(120_000);

  it('does not start with a PUBLIC_URL that other machines reach', async () => {
    const { code, output } = await failToStart({ ...UNISOLATED, env: { PUBLIC_URL: 'https://gateway.example' } });
    expect(code).to.equal(78);
    expect(output).to.include('PUBLIC_URL https://gateway.example');
  });

  it('does not start behind proxies', async () => {
    const { code, output } = await failToStart({ ...UNISOLATED, system: { proxies: { count: 1 } } });
    expect(code).to.equal(78);
    expect(output).to.include('1 proxies in front (proxies.count of system.config.yml)');
  });

  it('starts with a warning if only this machine reaches it', async () => {
    const gateway = await startGateway(UNISOLATED);
    expect(gateway.output()).to.include('sandboxes run without isolation');
    expect(await gateway.stop()).to.equal(0);
  });
});
