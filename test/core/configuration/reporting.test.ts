import { expect } from 'chai';
import type { LocatedProblem } from '../../../core/configuration/problems';
import { readReporting } from '../../../core/configuration/reporting';
import type { ServiceEndpointSettings } from '../../../core/configuration/schema';

const ENV = { ADMIN_KEY: 'secret' };

function read(reporting: object | undefined, more: object = {}) {
  const problems: LocatedProblem[] = [];
  const upstream = { url: 'https://api.example', adapter: 'messages', reporting, ...more };
  const read = readReporting(['serviceEndpoints', 'acme'], upstream as unknown as ServiceEndpointSettings, {
    folder: '/nowhere',
    env: ENV,
    problems,
  });
  return { read, problems: problems.map(({ path, message }) => `${path.slice(2).join('.')}: ${message}`) };
}

const own = { credential: { env: 'ADMIN_KEY' }, alarmAboveUsd: 1 };

describe('the reporting of an upstream', () => {
  it('is none where it is not configured', () => {
    expect(read(undefined)).to.deep.equal({ read: undefined, problems: [] });
  });

  it('has the credential, the address of the upstream, and the vendor whose dialect the adapter speaks', () => {
    const { read: reporting, problems } = read(own);
    expect(problems).to.deep.equal([]);
    expect(reporting).to.include({ vendor: 'anthropic', credential: 'secret', alarmAboveE8: 100_000_000n });
    expect(reporting?.url.href).to.equal('https://api.example/');
    expect(read(own, { adapter: 'chat' }).read?.vendor).to.equal('openai');
    expect(read({ ...own, vendor: 'openai' }).read?.vendor).to.equal('openai');
    expect(read({ ...own, url: 'https://reports.example/base' }).read?.url.href).to.equal(
      'https://reports.example/base',
    );
  });

  it('is there without its credential, and says which variable is not set', () => {
    const { read: reporting, problems } = read({ ...own, credential: { env: 'NOT_SET' } });
    expect(problems).to.deep.equal([]);
    expect(reporting).to.include({ credential: undefined, missing: 'NOT_SET is not set' });
  });

  it('is refused where its credential is a secret of the gateway itself', () => {
    expect(read({ ...own, credential: { env: 'ADMIN_TOKEN' } }).problems.join()).to.match(
      /^reporting\.credential\.env: /,
    );
  });

  it('is refused where the adapter does not tell whose reports they are', () => {
    expect(read(own, { adapter: 'our-own' }).problems.join()).to.match(/^reporting: say vendor/);
  });

  it('is refused for one key of an upstream with several credentials', () => {
    const several = { credentials: [{ env: 'ONE' }, { env: 'OTHER' }] };
    expect(read({ ...own, apiKeyId: 'key-1' }, several).problems.join()).to.match(
      /^reporting\.apiKeyId: is of one key/,
    );
    expect(read({ ...own, apiKeyId: 'key-1' }).problems).to.deep.equal([]);
  });

  it('is refused where the bound is no amount of USD', () => {
    for (const alarmAboveUsd of ['a lot', -1, '0.000000001'])
      expect(read({ ...own, alarmAboveUsd }).problems.join(), String(alarmAboveUsd)).to.match(
        /^reporting\.alarmAboveUsd: /,
      );
    expect(read({ ...own, alarmAboveUsd: '0.25' }).read?.alarmAboveE8).to.equal(25_000_000n);
  });
});
