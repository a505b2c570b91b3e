import { expect } from 'chai';
import { BY_FILE } from '../../../core/configuration/nameable';
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
    nameable: BY_FILE,
    problems,
  });
  return { read, problems: problems.map(({ path, message }) => `${path.slice(2).join('.')}: ${message}`) };
}

const own = { credential: { env: 'ADMIN_KEY' }, alarmAboveUsd: 1 };

describe('the usage reports of an upstream in the configuration', () => {
  it('are undefined if they are not configured', () => {
    expect(read(undefined)).to.deep.equal({ read: undefined, problems: [] });
  });

  it("have the credential, the upstream's address, and the vendor whose dialect the adapter speaks", () => {
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

  it('are listed without their credential, with the name of the unset variable', () => {
    const { read: reporting, problems } = read({ ...own, credential: { env: 'NOT_SET' } });
    expect(problems).to.deep.equal([]);
    expect(reporting).to.include({ credential: undefined, missing: 'NOT_SET is not set' });
  });

  it('are refused if their credential is a secret of the gateway itself', () => {
    expect(read({ ...own, credential: { env: 'ADMIN_TOKEN' } }).problems.join()).to.match(
      /^reporting\.credential\.env: /,
    );
  });

  it('are refused if the adapter names no vendor of reports', () => {
    expect(read(own, { adapter: 'our-own' }).problems.join()).to.match(/^reporting: add `vendor`/);
  });

  it('are refused for a single key of an upstream with several credentials', () => {
    const several = { credentials: [{ env: 'ONE' }, { env: 'OTHER' }] };
    expect(read({ ...own, apiKeyId: 'key-1' }, several).problems.join()).to.match(
      /^reporting\.apiKeyId: names one key/,
    );
    expect(read({ ...own, apiKeyId: 'key-1' }).problems).to.deep.equal([]);
  });

  it('are refused if the bound is not an amount of USD', () => {
    for (const alarmAboveUsd of ['a lot', -1, '0.000000001'])
      expect(read({ ...own, alarmAboveUsd }).problems.join(), String(alarmAboveUsd)).to.match(
        /^reporting\.alarmAboveUsd: /,
      );
    expect(read({ ...own, alarmAboveUsd: '0.25' }).read?.alarmAboveE8).to.equal(25_000_000n);
  });
});
