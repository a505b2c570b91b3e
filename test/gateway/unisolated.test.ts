import { expect } from 'chai';
import { failToStart, startGateway } from '../support/gateway';
import { SMALL } from '../support/sandboxes';
import { until } from '../support/until';

const UNISOLATED = {
  own: true,
  upstreams: { none: { url: 'http://127.0.0.1:9' } },
  plugins: { sandbox: { suppliers: { local: { driver: 'process', isolation: 'none' } } } },
  configure: (config: Record<string, unknown>) => {
    config['offerings'] = { small: SMALL };
  },
};

const SAID = 'offerings without isolation (small) are open to others';

describe('A gateway that offers sandboxes without isolation', function () {
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

  it('does not start with a SANDBOX_DOMAIN and an admin listener that other machines reach', async () => {
    const domain = await failToStart({ ...UNISOLATED, env: { SANDBOX_DOMAIN: 'boxes.example' } });
    expect([domain.code, domain.output]).to.satisfy(
      ([code, output]: [number, string]) => code === 78 && output.includes('SANDBOX_DOMAIN boxes.example'),
    );
    const configure = (config: Record<string, unknown>) => {
      UNISOLATED.configure(config);
      config['admin'] = { port: 0, host: '0.0.0.0' };
    };
    const { code, output } = await failToStart({ ...UNISOLATED, configure });
    expect(code).to.equal(78);
    expect(output).to.include('the listener 0.0.0.0');
  });

  it('starts without a warning if only this machine reaches it', async () => {
    const gateway = await startGateway(UNISOLATED);
    expect(gateway.output()).to.not.include(SAID);
    expect(await gateway.stop()).to.equal(0);
  });

  it('starts with a warning if the operator allows it; otherwise a reload that adds such a supplier is refused', async () => {
    const env = { PUBLIC_URL: 'https://gateway.example' };
    const suppliers = UNISOLATED.plugins.sandbox.suppliers;
    const allowed = await startGateway({
      ...UNISOLATED,
      env,
      plugins: { sandbox: { suppliers, allowUnisolated: true } },
    });
    expect(allowed.output()).to.include(SAID);
    expect(await allowed.stop()).to.equal(0);
    const gateway = await startGateway({ ...UNISOLATED, env, configure: () => {} });
    await gateway.changeConfiguration(UNISOLATED.configure);
    expect((await gateway.admin('POST', '/admin/v1/config/reload')).json.error.code).to.equal('CONFIGURATION_INVALID');
    await until('the log says why', async () => gateway.output().includes(SAID));
    expect(await gateway.stop()).to.equal(0);
  });
});
